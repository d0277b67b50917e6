package render

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var shots = flag.String("shots", "", "a folder to put pictures of the pages into, and a PDF")

// fitsPage says what sticks out of the page sideways, outside of tables that scroll.
const fitsPage = `(() => {
	const wide = document.documentElement.clientWidth, out = [];
	if (document.documentElement.scrollWidth > wide) out.push("the page is " + document.documentElement.scrollWidth + " wide of " + wide);
	for (const e of document.querySelectorAll("body *")) {
		const r = e.getBoundingClientRect();
		if (r.width && r.height && r.right > wide + 0.5 && !e.closest(".scroll") && !e.closest("legend")) out.push(e.tagName + " " + e.className + " " + e.textContent.slice(0, 40));
	}
	return out })()`

// drawn says which labels of the figures that are shown are cut off by their figure, or cover each other.
const drawn = `(() => {
	const out = [];
	let n = 0;
	for (const svg of document.querySelectorAll(".plot svg")) {
		if (!svg.getBoundingClientRect().width) continue;
		n++;
		const all = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBBox()]), v = svg.viewBox.baseVal;
		for (const [i, [s, r]] of all.entries()) {
			if (r.x < -1 || r.y < -1 || r.x + r.width > v.width + 1 || r.y + r.height > v.height + 1) out.push(svg.getAttribute("aria-labelledby") + ": cut off: " + s);
			for (const [o, q] of all.slice(i + 1)) {
				if (r.x < q.x + q.width - 1 && q.x < r.x + r.width - 1 && r.y < q.y + q.height - 4 && q.y < r.y + r.height - 4) out.push(svg.getAttribute("aria-labelledby") + ": " + s + " covers " + o);
			}
		}
	}
	if (!n) out.push("no figure is shown");
	return out })()`

// accessible says what a reader who does not see, or not well, would miss.
const accessible = `(() => {
	const out = [], ids = new Set();
	for (const e of document.querySelectorAll("[id]")) { if (ids.has(e.id)) out.push("two of id " + e.id); ids.add(e.id) }
	for (const e of document.querySelectorAll("[aria-labelledby]")) for (const id of e.getAttribute("aria-labelledby").split(" ")) if (!document.getElementById(id)?.textContent) out.push("no text for " + id);
	for (const e of document.querySelectorAll("svg")) if (!e.getAttribute("aria-labelledby") && e.getAttribute("aria-hidden") != "true") out.push("a figure without a title");
	for (const e of document.querySelectorAll("table")) if (!e.caption || ![...e.tHead.rows[0].cells].every(c => c.scope == "col")) out.push("a table without caption or scopes");
	for (const e of document.querySelectorAll("tbody tr")) if (e.cells[0].tagName != "TH") out.push("a row without a heading");
	if (document.querySelectorAll("h1").length != 1 || !document.documentElement.lang) out.push("no heading or language");
	return out })()`

// contrast says which texts are too faint, by the formula of WCAG 2.
const contrast = `(() => {
	const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
	const rgb = c => { canvas.fillStyle = c; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data] };
	const known = {}, light = c => known[c] ??= lightOf(c);
	const lightOf = c => { const [r, g, b] = rgb(c).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b };
	const under = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (c != "rgba(0, 0, 0, 0)") return c } return "white" };
	const out = new Set();
	for (const e of document.querySelectorAll("body *")) {
		if (![...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim()) || !e.getClientRects().length || ["TITLE", "DESC"].includes(e.tagName.toUpperCase())) continue;
		const s = getComputedStyle(e), a = light(e.closest("svg") ? s.fill : s.color), b = light(under(e));
		const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
		if (ratio < 4.5) out.add(e.tagName + " ." + (e.className.baseVal ?? e.className) + " " + ratio.toFixed(2));
	}
	return [...out] })()`

// nothing expects that an expression finds nothing to complain of.
func (b *browser) nothing(where, expression string) {
	b.t.Helper()
	var found []string
	if b.eval(expression, &found); len(found) > 0 {
		b.t.Errorf("%s: %d complaints: %s", where, len(found), strings.Join(found[:min(len(found), 12)], "\n\t"))
	}
}

func (b *browser) background() (c string) {
	b.eval("getComputedStyle(document.body).backgroundColor", &c)
	return c
}

// TestInBrowser opens pages in Chromium, as readers do.
func TestInBrowser(t *testing.T) {
	b := startBrowser(t)
	for name, s := range map[string]model{"server": server, "phone": phone} {
		path := write(t, name+".html", s.study())
		b.media("screen", "light")
		b.size(1280, 900)
		requests, complaints := b.open(path)
		if len(requests) != 1 || requests[0] != "file://"+path {
			t.Errorf("%s: the page asked for %v", name, requests)
		}
		if len(complaints) > 0 {
			t.Errorf("%s: the browser complains: %s", name, complaints)
		}
		b.nothing(name, accessible)
		for _, width := range []int{1280, 760, 400, 320} {
			b.size(width, 900)
			b.nothing(name, fitsPage)
			b.nothing(name, drawn)
			b.shot(fmt.Sprintf("%s-%d", name, width))
		}
		b.size(1280, 900)
		b.nothing(name+", light", contrast)
		b.click("label:has(#theme-dark)")
		b.nothing(name+", dark", contrast)
		b.shot(name + "-dark")
	}
	b.theme()
	b.print()
	b.hostile(write(t, "hostile.html", hostile()))
}

// theme expects the colours of the reader's system, until the reader chooses others.
func (b *browser) theme() {
	const white, dark = "rgb(255, 255, 255)", "rgb(15, 19, 24)"
	expect := func(step, want string) {
		b.t.Helper()
		if got := b.background(); got != want {
			b.t.Errorf("%s: the background is %s, want %s", step, got, want)
		}
	}
	b.click("label:has(#theme-auto)")
	expect("system light", white)
	b.media("screen", "dark")
	expect("system dark", dark)
	b.click("label:has(#theme-light)")
	expect("chosen light", white)
	b.media("screen", "light")
	b.click("label:has(#theme-dark)")
	expect("chosen dark", dark)
	b.eval(`(() => { document.querySelector("#theme-dark").focus(); return 1 })()`, new(int))
	for _, kind := range []string{"keyDown", "keyUp"} { // a group of radio buttons goes round
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": "ArrowLeft", "code": "ArrowLeft", "windowsVirtualKeyCode": 37})
	}
	expect("light by keyboard", white)
	b.click("label:has(#theme-dark)")
}

// print expects a page in black on white, with everything in it, that fits paper. Dark was chosen before.
func (b *browser) print() {
	b.media("print", "dark")
	b.size(680, 1000) // A4 in CSS pixels, without margins
	if got := b.background(); got != "rgb(255, 255, 255)" {
		b.t.Errorf("in print the background is %s", got)
	}
	b.nothing("print", fitsPage)
	b.nothing("print", drawn)
	b.nothing("print", `[...document.querySelectorAll("table")].filter(t => !t.checkVisibility({contentVisibilityAuto: true}) || t.getBoundingClientRect().width > 681).map(t => t.caption.textContent)`)
	var pdf struct{ Data []byte }
	b.media("", "light")
	b.ask("Page.printToPDF", map[string]any{"printBackground": true, "preferCSSPageSize": true, "paperWidth": 8.27, "paperHeight": 11.69}, &pdf)
	if !bytes.HasPrefix(pdf.Data, []byte("%PDF-")) {
		b.t.Error("no PDF")
	}
	b.keep("page.pdf", pdf.Data)
}

// keep writes what can be looked at, with -shots.
func (b *browser) keep(name string, data []byte) {
	b.t.Helper()
	if *shots == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(*shots, name), data, 0o600); err != nil {
		b.t.Error(err)
	}
}

// shot keeps a picture of the whole page.
func (b *browser) shot(name string) {
	b.t.Helper()
	if *shots == "" {
		return
	}
	var picture struct{ Data []byte }
	b.ask("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &picture)
	b.keep(name+".png", picture.Data)
}

// hostile expects that evil strings are nothing but text.
func (b *browser) hostile(path string) {
	b.size(1280, 900)
	requests, complaints := b.open(path)
	if len(requests) != 1 || len(complaints) > 0 {
		b.t.Errorf("hostile: requests %v, complaints %s", requests, complaints)
	}
	b.nothing("hostile", `[...document.querySelectorAll("script, img, iframe, a, object, body style, [style]"), ...[...document.querySelectorAll("*")].filter(e => [...e.attributes].some(a => a.name.startsWith("on")))].map(e => e.outerHTML.slice(0, 80))`)
	b.nothing("hostile", `window.hacked ? ["a script ran"] : []`)
	b.nothing("hostile", accessible)
	for _, width := range []int{1280, 400} {
		b.size(width, 900)
		b.nothing("hostile", fitsPage)
	}
}
