package render

import (
	"bytes"
	"testing"
)

func page2(t *testing.T, m model) []byte {
	t.Helper()
	s := m.study()
	var b bytes.Buffer
	if err := HTML(&b, s, sketch(s)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
