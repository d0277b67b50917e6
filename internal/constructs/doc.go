// Package constructs tests stubs on every construct of C and C++ that moves control in a way of its own, and on the
// options that change how compilers make functions. Each construct is a program in testdata that says, in its first
// comment, what the decoded call tree must be. It is built plainly and with stubs, and run plainly, untraced and traced.
//
// There is nothing here but tests. See spec_test.go for the language of those comments.
package constructs
