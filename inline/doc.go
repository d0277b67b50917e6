// Package inline is the format of the records that the stubs write, and its decoder.
//
// A traced thread writes slots of 8 bytes into its ring. A slot's low half says what it is, its high half is the low
// half of the processor's counter (record.go). Whoever drains a ring hands the decoder a Segment: the slots from
// oldest to newest, what is known about when they were written, and anchors, which tie places in the ring to the full
// counter. Decode turns it into Events in order of time, with the full counter and an index into a Methods table;
// Decoded.Slices pairs them into calls.
//
// Nothing here reads clocks or the traced process. All times are ticks of the counter; converting them is the
// timeline's affair. No value in this package may be used by two goroutines at once.
package inline
