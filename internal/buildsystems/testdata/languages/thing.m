#import <objc/Object.h>
#include <stdio.h>
#include <objc/runtime.h>
int part(int x);
@interface Thing : Object
+ (int) value: (int) x;
@end
@implementation Thing
+ (int) value: (int) x { return part(x); }
@end
int main(void) { printf("%d\n", [Thing value: 42]); return 0; }
