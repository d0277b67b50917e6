/* Static probe sites as SystemTap's sdt.h makes them: a nop, and a note that says where it is. Included by the variant usdt:
 * provider "braid", name FUNCTION_enter or FUNCTION_leave, no arguments, no semaphore. */
#ifdef __LP64__
#define USDT_WORD ".8byte"
#else
#define USDT_WORD ".4byte"
#endif
#define USDT_SITE(name)                                                                                     \
	__asm__ volatile("990: nop\n"                                                                       \
			 "\t.pushsection .note.stapsdt,\"\",%%note\n"                                        \
			 "\t.balign 4\n\t.4byte 992f-991f, 994f-993f, 3\n"                                   \
			 "991: .asciz \"stapsdt\"\n992: .balign 4\n"                                         \
			 "993: " USDT_WORD " 990b, _.stapsdt.base, 0\n"                                      \
			 "\t.asciz \"braid\"\n\t.asciz \"" name "\"\n\t.asciz \"\"\n"                          \
			 "994: .balign 4\n\t.popsection\n"                                                   \
			 "\t.ifndef _.stapsdt.base\n"                                                        \
			 "\t.pushsection .stapsdt.base,\"aG\",%%progbits,.stapsdt.base,comdat\n"             \
			 "\t.weak _.stapsdt.base\n\t.hidden _.stapsdt.base\n"                                \
			 "_.stapsdt.base: .space 1\n\t.size _.stapsdt.base, 1\n\t.popsection\n\t.endif" ::)
#define USDT_TEXT(x) USDT_TEXT_(x)
#define USDT_TEXT_(x) #x
#define TRACED_ENTER(function) USDT_SITE(USDT_TEXT(function) "_enter")
#define TRACED_LEAVE(function) USDT_SITE(USDT_TEXT(function) "_leave")
