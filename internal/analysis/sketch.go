package analysis

import "math/bits"

// SketchError bounds the relative error of a Sketch's quantiles: a bucket is at most 1/32 of its values wide, and its
// middle stands for it.
const SketchError = 1.0 / 64

const (
	subBits    = 5 // 32 buckets in an octave
	subBuckets = 1 << subBits
	spare      = 8
)

// Sketch counts values of 0 or more in buckets whose width grows with the value, as HDR histograms do. It takes 4 bytes
// for each bucket between the smallest and the largest value seen. The zero value is empty and ready.
type Sketch struct {
	n      uint64
	low    uint64 // zeros, which most times in a state are
	first  int    // bucket of counts[0]
	counts []uint32
}

func bucketOf(v int64) int {
	if v < subBuckets {
		return int(v)
	}
	octave := bits.Len64(uint64(v)) - 1 - subBits
	return octave<<subBits + int(uint64(v)>>octave)
}

// valueOf is the middle of a bucket.
func valueOf(bucket int) int64 {
	if bucket < 2*subBuckets {
		return int64(bucket)
	}
	octave := bucket>>subBits - 1
	base := int64(bucket&(subBuckets-1)|subBuckets) << octave
	return base + int64(1)<<octave/2
}

// Add counts a value; what is below 0 counts as 0.
func (s *Sketch) Add(v int64) {
	s.n++
	if v <= 0 {
		s.low++
		return
	}
	b := bucketOf(v)
	if i := b - s.first; uint(i) < uint(len(s.counts)) {
		s.counts[i]++
		return
	}
	s.grow(b)
	s.counts[b-s.first]++
}

// AddZeros counts n zeros.
func (s *Sketch) AddZeros(n uint64) { s.n, s.low = s.n+n, s.low+n }

// grow makes room for bucket b, with some to spare on that side.
func (s *Sketch) grow(b int) {
	if len(s.counts) == 0 {
		s.first = max(0, b-spare)
		s.counts = make([]uint32, 2*spare)
		return
	}
	first, end := s.first, s.first+len(s.counts)
	if b < first {
		first = max(0, b-spare)
	}
	if b >= end {
		end = b + spare
	}
	counts := make([]uint32, end-first)
	copy(counts[s.first-first:], s.counts)
	s.first, s.counts = first, counts
}

// N is how many values there are.
func (s *Sketch) N() uint64 { return s.n }

// Quantile is the value of which a share q, from 0 to 1, of the values is not above it; 0 if there are none.
func (s *Sketch) Quantile(q float64) int64 {
	if s.n == 0 {
		return 0
	}
	rank := uint64(q * float64(s.n-1)) // of the value in order, from 0
	if rank < s.low {
		return 0
	}
	seen := s.low
	for i, c := range s.counts {
		if seen += uint64(c); seen > rank {
			return valueOf(s.first + i)
		}
	}
	return 0
}

// MAD is the median of the values' distances to median.
func (s *Sketch) MAD(median int64) int64 {
	var d Sketch
	d.count(abs(median), s.low)
	for i, c := range s.counts {
		d.count(abs(valueOf(s.first+i)-median), uint64(c))
	}
	return d.Quantile(0.5)
}

// count adds a value n times.
func (s *Sketch) count(v int64, n uint64) {
	if n == 0 {
		return
	}
	s.Add(v)
	if v <= 0 {
		s.AddZeros(n - 1)
		return
	}
	s.n += n - 1
	s.counts[bucketOf(v)-s.first] += uint32(n - 1)
}

func abs(v int64) int64 { return max(v, -v) }
