package render

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// browser is a Chromium without a window, spoken to over its debugging protocol through pipes: messages are JSON, each
// followed by a zero byte. It is used by one goroutine.
type browser struct {
	t       *testing.T
	to      *os.File
	from    *bufio.Reader
	session string
	last    int
	events  []event
}

type event struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// patience is how long the browser may take before the test fails rather than hang.
const patience = 2 * time.Minute

func startBrowser(t *testing.T) *browser {
	t.Helper()
	theirIn, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "braid-chromium")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+dir, "about:blank")
	c.ExtraFiles = []*os.File{theirIn, theirOut} // 3 and 4, as the protocol has it
	c.Env = append(os.Environ(), "HOME="+dir)
	if err := c.Start(); err != nil {
		t.Fatalf("starting Chromium (package chromium): %v", err)
	}
	theirIn.Close()
	theirOut.Close()
	watchdog := time.AfterFunc(patience, func() { c.Process.Kill() })
	b := &browser{t: t, to: to, from: bufio.NewReaderSize(from, 1<<20)}
	t.Cleanup(func() {
		b.session = ""
		b.call("Browser.close", nil)
		to.Close()
		c.Wait()
		from.Close()
		watchdog.Stop()
		os.RemoveAll(dir)
	})
	var target struct{ TargetID string }
	b.ask("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	b.ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	b.session = session.SessionID
	for _, domain := range []string{"Page", "Network", "Log", "Runtime"} {
		b.call(domain+".enable", nil)
	}
	return b
}

// call sends a command and returns its result; events that come meanwhile are kept.
func (b *browser) call(method string, params any) json.RawMessage {
	b.t.Helper()
	b.last++
	m := map[string]any{"id": b.last, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	data, err := json.Marshal(m)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(data, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		e := b.next()
		if e.ID != b.last {
			continue
		}
		if e.Error != nil {
			b.t.Fatalf("%s: %s", method, e.Error.Message)
		}
		return e.Result
	}
}

func (b *browser) ask(method string, params, result any) {
	b.t.Helper()
	if err := json.Unmarshal(b.call(method, params), result); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

func (b *browser) next() event {
	b.t.Helper()
	data, err := b.from.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("Chromium ended: %v", err)
	}
	var e event
	if err := json.Unmarshal(data[:len(data)-1], &e); err != nil {
		b.t.Fatalf("%v: %s", err, data)
	}
	if e.ID == 0 {
		b.events = append(b.events, e)
	}
	return e
}

// open loads a file and returns what the page asked for and complained of meanwhile.
func (b *browser) open(path string) (requests, complaints []string) {
	b.t.Helper()
	b.events = nil
	b.call("Page.navigate", map[string]any{"url": "file://" + path})
	for loaded := false; !loaded; {
		for _, e := range b.events {
			loaded = loaded || e.Method == "Page.loadEventFired"
		}
		if !loaded {
			b.next()
		}
	}
	b.eval("document.fonts.ready.then(() => 1)", new(int))
	for _, e := range b.events {
		switch e.Method {
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			if err := json.Unmarshal(e.Params, &p); err != nil {
				b.t.Fatal(err)
			}
			requests = append(requests, p.Request.URL)
		case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
			complaints = append(complaints, string(e.Params))
		}
	}
	return requests, complaints
}

// eval runs an expression in the page; promises are awaited.
func (b *browser) eval(expression string, result any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.ask("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if err := json.Unmarshal(r.Result.Value, result); err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
}

// media sets what style sheets ask for: the medium ("screen", "print") and the colours that the reader's system has.
func (b *browser) media(medium, scheme string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": medium, "features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}})
}

func (b *browser) size(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false})
}

// click clicks on the middle of what a selector finds, as a reader does.
func (b *browser) click(selector string) {
	b.t.Helper()
	var at [2]float64
	b.eval(fmt.Sprintf(`(() => { const e = document.querySelector(%q); e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2] })()`, selector), &at)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at[0], "y": at[1], "button": "left", "clickCount": 1})
	}
}
