package render

import (
	"math"
	"strconv"
	"strings"
)

// number is v with so many decimals and commas between thousands. Zero has no sign.
func number(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "?"
	}
	s := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, rest, point := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + rest
	}
	if v < 0 && strings.Trim(s, "0.") != "" {
		return "-" + whole
	}
	return whole
}

// decimals is how many of them give about three digits: none from 100 on, never more than most, but one more for what is near zero.
func decimals(v float64, most int) int {
	v = math.Abs(v)
	n := 0
	for limit := 99.95; v < limit && n < most; limit /= 10 {
		n++
	}
	if v > 0 && v < 0.0995 && most > 1 {
		n++
	}
	return n
}

// nanoseconds is a short time in ns, three digits.
func nanoseconds(v float64) string { return number(v, decimals(v, 2)) }

// ratio is a factor: "1.03", "32.1", "1,020".
func ratio(v float64) string { return number(v, decimals(v, 2)) }

// percent is a share in percent, without the sign for it.
func percent(share float64) string {
	v := share * 100
	if math.Abs(v) < 9.995 {
		return number(v, 2)
	}
	return number(v, decimals(v, 1))
}

// span is an interval, both ends with as many decimals as the one that is farther from zero has, or as it takes to tell them apart.
func span(low, high float64, most int) string {
	d := decimals(math.Max(math.Abs(low), math.Abs(high)), most)
	for more := 0; more < 2 && low != high && number(low, d) == number(high, d); more++ {
		d++
	}
	return number(low, d) + " to " + number(high, d)
}

// percents is an interval of shares in percent.
func percents(low, high float64) string {
	if math.Max(math.Abs(low), math.Abs(high)) < 0.09995 {
		return number(low*100, 2) + " to " + number(high*100, 2)
	}
	return span(low*100, high*100, 1)
}

// long is a time of any length in ns, with its unit.
func long(ns float64) string {
	v := math.Abs(ns)
	switch {
	case v < 999.5:
		return nanoseconds(ns) + " ns"
	case v < 999.5e3:
		return number(ns/1e3, decimals(ns/1e3, 2)) + " µs"
	case v < 999.5e6:
		return number(ns/1e6, decimals(ns/1e6, 2)) + " ms"
	}
	return number(ns/1e9, decimals(ns/1e9, 2)) + " s"
}

// count is a whole number.
func count(n int) string { return number(float64(n), 0) }

// plural is "1 sample", "3 samples".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "ch") {
		one += "e"
	}
	return count(n) + " " + one + "s"
}

// seriesCount is "1 series", "3 series".
func seriesCount(n int) string { return count(n) + " series" }
