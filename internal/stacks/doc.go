// Package stacks joins samples with the method rings: for each sample one stack, of the methods that its thread had
// open, the native frames below and among them, and the kernel's frames on top.
//
// Two witnesses saw the thread at the moment of a sample. The ring knows every open method, but only methods. The
// unwound stack knows every function, but may have lost some: without a frame pointer the caller of a function is
// missing, a copied stack ends somewhere. The join keeps all that either one saw, in the order of both, and shows what both
// saw once (see merge).
//
// The rings are read thread by thread, and the samples twice: once for their times, once for their frames. In memory are
// 12 bytes for each sample, one node for each different chain of open methods, and one function for each that occurs.
//
// Nothing here may be used by two goroutines at once.
package stacks
