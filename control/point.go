package control

// inject is called at numbered points of this package's steps by tests that let the traced threads come between two of
// them, or have the recorder die there (race_test.go). It is nil otherwise.
var inject func(number int)

func point(number int) {
	if inject != nil {
		inject(number)
	}
}
