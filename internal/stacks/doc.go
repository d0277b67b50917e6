// Package stacks joins samples with the method rings: for each sample one stack, of the methods that its thread had
// open, the native frames below and among them, and the kernel's frames on top.
//
// Two witnesses saw the thread at the moment of a sample. The ring knows every open method, but only methods. The
// unwound stack knows every function, but may have lost some: without a frame pointer the caller of a function is
// missing, a copied stack ends somewhere. The join keeps all that either one saw, in the order of both, and shows what both
// saw once (see merge).
//
// The rings are read thread by thread. The samples are read up to four times: for their times; for methods of which the rings
// have only the exit; for native functions that call methods; for their stacks. In memory are 48 bytes for each sample,
// and one entry for each function, each address that occurs, and each chain of methods that was open at a sample.
//
// Nothing here may be used by two goroutines at once.
package stacks
