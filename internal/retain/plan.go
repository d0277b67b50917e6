package retain

import (
	"cmp"
	"slices"
	"time"
)

const week = 7 * 24 * time.Hour

// worth compares two traces by what does not depend on when they came: negative if a is worth less.
func (o *Options) worth(a, b *Entry) int {
	var c int
	if o.Keep == KeepCampaign {
		c = cmp.Compare(b2i(a.Campaign == o.Campaign), b2i(b.Campaign == o.Campaign))
	}
	if c == 0 {
		c = cmp.Compare(a.Severity, b.Severity)
	}
	if c == 0 && o.Keep != KeepFirst {
		c = cmp.Compare(a.Score, b.Score)
	}
	return c
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// victims sorts traces: the first is the first to go.
func (o *Options) victims(kept []*Entry) []*Entry {
	out := slices.Clone(kept)
	slices.SortFunc(out, func(a, b *Entry) int {
		age := a.Time.Compare(b.Time)
		if o.Keep == KeepFirst {
			age = -age
		}
		return cmp.Or(o.worth(a, b), age, cmp.Compare(a.Name, b.Name))
	})
	return out
}

// yields says whether an old trace goes for a new one. Among equals, KeepFirst keeps the old one. Times do not decide: after
// a step of the clock, a new trace may be dated before old ones.
func (o *Options) yields(old, new *Entry) bool {
	c := o.worth(old, new)
	return c < 0 || c == 0 && o.Keep != KeepFirst
}

// room is what the disk and the store allow.
type room struct {
	now      time.Time
	reserved int64 // bytes held for other traces that are being written
	free     int64 // bytes free on the disk
}

// scope is a limit on the number of recent traces of one sort: those with the same key.
type scope struct {
	reason Reason
	limit  int
	key    func(e *Entry) Entry
}

func (o *Options) scopes() []scope {
	// The narrowest first: what goes there may make room for the others as well.
	return slices.DeleteFunc([]scope{
		{ReasonPerTrigger, o.Limits.PerTrigger, func(e *Entry) Entry {
			return Entry{UID: e.UID, Program: e.Program, Trigger: e.Trigger}
		}},
		{ReasonPerProgram, o.Limits.PerProgram, func(e *Entry) Entry { return Entry{UID: e.UID, Program: e.Program} }},
		{ReasonPerWeek, o.Limits.PerWeek, func(e *Entry) Entry { return Entry{} }},
	}, func(s scope) bool { return s.limit <= 0 })
}

func recent(e *Entry, now time.Time) bool { return e.Time.After(now.Add(-week)) }

// plan says which traces have to go, and why, for a new one of e.Bytes to be kept, or that it is not worth it. Nothing has
// been done then.
func (o *Options) plan(kept []*Entry, e *Entry, r room) (map[*Entry]Reason, *RefusedError) {
	goes := map[*Entry]Reason{}
	order := o.victims(kept)
	if o.Limits.MaxAge > 0 && e.Time.Before(r.now.Add(-o.Limits.MaxAge)) {
		return nil, refused(ReasonAge, "it is older than %v", o.Limits.MaxAge)
	}
	for _, s := range o.scopes() {
		if !recent(e, r.now) {
			break
		}
		same := slices.DeleteFunc(slices.Clone(order), func(k *Entry) bool {
			return goes[k] != "" || !recent(k, r.now) || s.key(k) != s.key(e)
		})
		for _, k := range same[:max(0, len(same)+1-s.limit)] {
			if !o.yields(k, e) {
				return nil, refused(s.reason, "%d traces are kept already (%s), none of them less severe", s.limit, s.reason)
			}
			goes[k] = s.reason
		}
	}
	for _, reason := range []Reason{ReasonQuota, ReasonFree} {
		for _, k := range order {
			if !o.over(reason, kept, goes, e, r) || goes[k] == "" && !o.yields(k, e) {
				break
			}
			if goes[k] == "" {
				goes[k] = reason
			}
		}
		if o.over(reason, kept, goes, e, r) {
			return nil, refused(reason, "no room for %d bytes (%s), even without all that is less severe", e.Bytes, reason)
		}
	}
	return goes, nil
}

// over says whether there is too little room for e's bytes once some have gone.
func (o *Options) over(reason Reason, kept []*Entry, goes map[*Entry]Reason, e *Entry, r room) bool {
	total, free := r.reserved+e.Bytes, r.free-r.reserved-e.Bytes
	for _, k := range kept {
		if goes[k] == "" {
			total += k.Bytes
		} else {
			free += k.Bytes
		}
	}
	if reason == ReasonQuota {
		return o.Limits.Quota > 0 && total > o.Limits.Quota
	}
	return o.Limits.MinFree > 0 && free < o.Limits.MinFree
}

// fits says whether e's bytes have room while all others stay.
func (o *Options) fits(kept []*Entry, e *Entry, r room) bool {
	return !o.over(ReasonQuota, kept, nil, e, r) && !o.over(ReasonFree, kept, nil, e, r)
}

// excess says which traces have to go because limits were lowered, or time has passed.
func (o *Options) excess(kept []*Entry, now time.Time) map[*Entry]Reason {
	goes := map[*Entry]Reason{}
	order := o.victims(kept)
	for _, k := range order {
		if o.Limits.MaxAge > 0 && k.Time.Before(now.Add(-o.Limits.MaxAge)) {
			goes[k] = ReasonAge
		}
	}
	for _, s := range o.scopes() {
		same := map[Entry][]*Entry{}
		for _, k := range order {
			if goes[k] == "" && recent(k, now) {
				same[s.key(k)] = append(same[s.key(k)], k)
			}
		}
		for _, list := range same {
			for _, k := range list[:max(0, len(list)-s.limit)] {
				goes[k] = s.reason
			}
		}
	}
	var total int64
	for _, k := range kept {
		if goes[k] == "" {
			total += k.Bytes
		}
	}
	for _, k := range order {
		if o.Limits.Quota > 0 && total > o.Limits.Quota && goes[k] == "" {
			goes[k] = ReasonQuota
			total -= k.Bytes
		}
	}
	return goes
}
