/* sum is in a static library, shelf in a shared one. */
#ifdef __cplusplus
extern "C" {
#endif
int sum(int a, int b);
int shelf(int i);
#ifdef __cplusplus
}
#endif
