// Package symbols turns addresses of a traced process into function names.
//
// Three things are kept apart:
//
//   - A [Module] says that a file was mapped into a process, where, and how to recognise the file later. It comes from
//     /proc/PID/maps ([ReadModules]) or from what a program's runtime registered itself ([Registered]), and it does
//     not need the process any more once it is known.
//   - An [Image] is what one ELF file says about its functions, at link-time addresses. It is the same for every
//     process that maps the file.
//   - A [Table] puts images at the places that modules name, and answers for run-time addresses.
//
// A run-time address is a link-time address (st_value, p_vaddr) plus the module's bias, modulo 2^64. The bias of a
// position-dependent executable is 0.
//
// Names come from .symtab, .dynsym and .gnu_debugdata of the file itself and, if it has no .symtab, from a separate
// debug file found by build id or .gnu_debuglink. A file whose build id is not the one that was traced is never used:
// its module stays unresolved, and [Table.Modules] says why.
//
// All files and texts that this package reads are treated as hostile: sizes are checked against the file and against
// fixed limits before memory is taken. The package neither logs nor keeps files open.
package symbols
