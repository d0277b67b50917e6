// Package render shows a study: as text for a terminal, as a page of HTML, as sentences, and beside another study.
//
// Everything comes from a result.Study and its estimate.Study; nothing is measured, and nothing depends on the clock, the
// machine or the order of maps, so that the same result always gives the same bytes. Neither is changed. Functions can be called
// by several goroutines at once, also for the same study.
//
// What is in a result can have been written by anybody. Text goes to terminals through wording.Printable, to pages through
// html/template, and to figures through the functions of drawing, which escape it. The page's policy forbids scripts, requests and
// all styles but its own besides.
//
// Figures are drawn twice, for wide and for narrow pages, because labels that shrink with a figure can't be read on a telephone.
// The style sheet shows one of them. Groups of arms differ in shapes and dashes too, not in colour alone, and each figure's numbers
// stand in a table as well.
package render
