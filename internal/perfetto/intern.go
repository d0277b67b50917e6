package perfetto

// NameID stands for an event's name.
type NameID uint32

// KeyID stands for the name of an argument.
type KeyID uint32

// intern numbers strings from 1.
type intern struct {
	ids     map[string]uint32
	strings []string
}

func newIntern() intern { return intern{ids: map[string]uint32{}, strings: []string{""}} }

func (i *intern) id(s string) uint32 {
	id, ok := i.ids[s]
	if !ok {
		id = uint32(len(i.strings))
		i.ids[s] = id
		i.strings = append(i.strings, s)
	}
	return id
}

// Name returns the id of an event name, for this Writer. The name is written when, and once for each track on which,
// it is first used.
func (w *Writer) Name(name string) NameID { return NameID(w.names.id(name)) }

// Key returns the id of an argument's name, for this Writer.
func (w *Writer) Key(name string) KeyID { return KeyID(w.keys.id(name)) }

// idSet is a set of small numbers.
type idSet []uint64

func (s idSet) has(id uint32) bool { return int(id>>6) < len(s) && s[id>>6]>>(id&63)&1 != 0 }

func (s *idSet) add(id uint32) {
	for int(id>>6) >= len(*s) {
		*s = append(*s, 0)
	}
	(*s)[id>>6] |= 1 << (id & 63)
}

// intern writes a name for its first use on a track. tag is the InternedData field.
func (w *Writer) intern(t *Track, tag uint64, id uint32, name string) {
	w.begin(t)
	p := w.packet()
	w.buf = append(w.buf, t.prefix[:t.prefixLen]...)
	d := w.buf.open(tagInternedData)
	e := w.buf.open(tag)
	w.buf.uint(tagInternedIID, uint64(id))
	w.buf.string(tagInternedName, name)
	w.buf.close(e)
	w.buf.close(d)
	w.buf.close(p)
}
