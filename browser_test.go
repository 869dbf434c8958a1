package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// browser is a headless Chromium with one page, spoken to over pipes in its DevTools protocol: messages of JSON, each ended by a zero byte.
type browser struct {
	t       *testing.T
	session string
	to      io.Writer
	ended   chan struct{} // closed when Chromium says nothing more

	mu       sync.Mutex
	last     int
	answers  map[int]chan devtoolsMessage
	problems []string      // what the page's console and its policy complain of
	requests []string      // addresses that were asked for
	loads    int           // pages that were loaded
	more     chan struct{} // closed and replaced with each load
}

// devtoolsMessage is an answer, or an event.
type devtoolsMessage struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Params json.RawMessage `json:"params"`
	Error  *struct{ Message string }
}

// openBrowser starts Chromium, or skips the test where there is none.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	var ends [4]*os.File // Chromium reads from descriptor 3 and writes to 4
	for i := 0; i < len(ends); i += 2 {
		if ends[i], ends[i+1], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
	}
	profile, err := os.MkdirTemp("", "tasard-browser-")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	command.ExtraFiles = []*os.File{ends[0], ends[3]}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = ends[0].Close(), ends[3].Close() // Chromium has its own
	b := &browser{t: t, to: ends[1], ended: make(chan struct{}), answers: map[int]chan devtoolsMessage{}, more: make(chan struct{})}
	go b.listen(ends[2])
	t.Cleanup(func() {
		b.tell("Browser.close", nil)
		timer := time.AfterFunc(patience, func() { _ = command.Process.Kill() })
		<-b.ended
		timer.Stop()
		_ = command.Wait() // how it ended says nothing about the pages
		_, _ = ends[1].Close(), ends[2].Close()
		_ = os.RemoveAll(profile) // its helpers may still be leaving
	})
	b.attach()
	return b
}

// attach takes the page that Chromium opened.
func (b *browser) attach() {
	b.t.Helper()
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	b.ask("Target.getTargets", nil, &targets)
	for _, target := range targets.TargetInfos {
		if target.Type == "page" {
			var attached struct{ SessionID string }
			b.ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
			b.session = attached.SessionID
		}
	}
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Audits"} {
		b.ask(domain+".enable", nil, nil)
	}
	b.ask("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil)
}

// listen hands out what Chromium says, until it ends.
func (b *browser) listen(from io.Reader) {
	defer close(b.ended)
	for reader := bufio.NewReader(from); ; {
		text, err := reader.ReadBytes(0)
		if err != nil {
			return
		}
		var m devtoolsMessage
		if json.Unmarshal(bytes.TrimSuffix(text, []byte{0}), &m) != nil {
			continue
		}
		b.mu.Lock()
		if answer := b.answers[m.ID]; answer != nil {
			answer <- m
			delete(b.answers, m.ID)
		}
		b.note(m)
		b.mu.Unlock()
	}
}

// note remembers what an event tells.
func (b *browser) note(m devtoolsMessage) {
	text := string(m.Params)
	switch m.Method {
	case "Page.loadEventFired":
		b.loads++
		close(b.more)
		b.more = make(chan struct{})
	case "Network.requestWillBeSent":
		var sent struct{ Request struct{ URL string } }
		if json.Unmarshal(m.Params, &sent) == nil {
			b.requests = append(b.requests, sent.Request.URL)
		}
	case "Log.entryAdded":
		if !strings.Contains(text, "the server responded with a status of") { // a refusal that the test asked for
			b.problems = append(b.problems, text)
		}
	case "Runtime.exceptionThrown":
		b.problems = append(b.problems, text)
	case "Audits.issueAdded":
		if strings.Contains(text, "ContentSecurityPolicyIssue") {
			b.problems = append(b.problems, text)
		}
	}
}

// tell sends a command and gives where its answer comes.
func (b *browser) tell(method string, parameters any) chan devtoolsMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	answer := make(chan devtoolsMessage, 1)
	b.answers[b.last] = answer
	message := map[string]any{"id": b.last, "method": method}
	if parameters != nil {
		message["params"] = parameters
	}
	if b.session != "" && method != "Browser.close" && method != "Browser.grantPermissions" {
		message["sessionId"] = b.session
	}
	text, err := json.Marshal(message)
	if err == nil {
		_, err = b.to.Write(append(text, 0))
	}
	if err != nil {
		answer <- devtoolsMessage{Error: &struct{ Message string }{err.Error()}}
	}
	return answer
}

// ask is tell for an answer, which may be nil.
func (b *browser) ask(method string, parameters, result any) {
	b.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var err error
	select {
	case m := <-b.tell(method, parameters):
		if m.Error != nil {
			err = errors.New(m.Error.Message)
		} else if result != nil {
			err = json.Unmarshal(m.Result, result)
		}
	case <-b.ended:
		err = errors.New("the browser has ended")
	case <-timer.C:
		err = errors.New("no answer")
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// run is the value of an expression in the page, as text; promises are waited for.
func (b *browser) run(expression string) string {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value any }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	b.ask("Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true}, &answer)
	if answer.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, answer.ExceptionDetails.Exception.Description)
	}
	return fmt.Sprint(answer.Result.Value)
}

// loading does what leads to another page, and waits until that is loaded.
func (b *browser) loading(act func()) {
	b.t.Helper()
	b.mu.Lock()
	before := b.loads
	b.mu.Unlock()
	act()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		b.mu.Lock()
		loads, more := b.loads, b.more
		b.mu.Unlock()
		if loads > before {
			return
		}
		select {
		case <-more:
		case <-timer.C:
			b.t.Fatal("no page is loaded")
		}
	}
}

// open goes to an address.
func (b *browser) open(address string) {
	b.t.Helper()
	b.loading(func() { b.ask("Page.navigate", map[string]any{"url": address}, nil) })
}

// until waits in the page until an expression holds, looking at it after each change.
func (b *browser) until(expression string) {
	b.t.Helper()
	b.run(`new Promise((done, fail) => {
		const look = () => { if (` + expression + `) { watch.disconnect(); clearTimeout(late); done(); } };
		const watch = new MutationObserver(look);
		const late = setTimeout(() => { watch.disconnect(); fail(new Error("it never came true")); }, 60000);
		watch.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
		look();
	})`)
}

// clean fails when the page complained of anything, or asked anybody but the node.
func (b *browser) clean(node *program) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, problem := range b.problems {
		b.t.Errorf("the page complains: %s", problem)
	}
	for _, address := range b.requests {
		if !strings.HasPrefix(address, node.url+"/") && !strings.HasPrefix(address, "data:") {
			b.t.Errorf("the page asks %s", address)
		}
	}
	if len(b.requests) == 0 {
		b.t.Error("no request was seen: the test is blind")
	}
}
