// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/artifacts"
)

// The size of the window, in pixels.
const windowWidth, windowHeight = 1280, 860

// browser is Chromium with one tab, on a console.
type browser struct {
	// tab is the tab: its library knows one by a context.
	//nolint:containedctx // It is what the browser is.
	tab context.Context
	// base is the console's address.
	base string

	// mu guards complaints: what the tab has complained of, and what it should not have done.
	mu         sync.Mutex
	complaints []string
}

// openConsole runs the command on a hub, and has Chromium open the file that it names.
func openConsole(kubeconfig string) *browser {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	home, err := filepath.Abs(filepath.Join("..", "..", "..", ".fleetgate", "bin", "kubectl-fleetgate"))
	Expect(err).NotTo(HaveOccurred())
	command := exec.Command(home, "console", "--open=false", "--kubeconfig="+kubeconfig)
	command.Env, command.Stderr = append(os.Environ(), "HOME="+dir, "TMPDIR="+dir), GinkgoWriter
	out, err := command.StdoutPipe()
	Expect(err).NotTo(HaveOccurred())
	Expect(command.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(command.Process.Signal(os.Interrupt)).To(Succeed())
		Expect(command.Wait()).To(Succeed(), "the console ends on the signal")
	})
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	file, err := lines.ReadString('\n')
	Expect(err).NotTo(HaveOccurred())

	// Root's browser has no sandbox: it is shown this console, and nothing else.
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.WindowSize(windowWidth, windowHeight), chromedp.UserDataDir(filepath.Join(dir, "profile")),
		chromedp.Flag("no-proxy-server", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("enable-precise-memory-info", true),
		chromedp.WSURLReadTimeout(time.Minute))
	allocated, freed := chromedp.NewExecAllocator(context.Background(), options...)
	tab, closed := chromedp.NewContext(allocated)
	DeferCleanup(func() { closed(); freed() })
	b := &browser{tab: tab}
	b.listen()
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	// The page continues by itself: which of its loads is awaited does not matter.
	_ = chromedp.Do(b.tab, chromedp.Navigate("file://"+strings.TrimSpace(file)))
	Eventually(func() string { return b.text("location.pathname + document.title") }).Should(HavePrefix("/Fleet"), "the file leads to the console")
	b.base = b.text("location.origin")
	Expect(b.base).To(MatchRegexp(`^http://[0-9a-f]{20}\.localhost:\d+$`))
	return b
}

// listen keeps what no page of the console may do: speak to others, run what others have
// written, break its own policy, fail.
func (b *browser) listen() {
	Expect(chromedp.Listen(b.tab, func(event any) {
		switch e := event.(type) {
		case *page.EventJavascriptDialogOpening:
			b.complain("a dialog opens: %s", e.Message)
			go func() { _, _ = chromedp.Call(b.tab, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{}) }()
		case *runtime.EventExceptionThrown:
			b.complain("a script fails: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" && !isRefusal(e.Entry.URL, e.Entry.Text) {
				b.complain("%s: %s", e.Entry.URL, e.Entry.Text)
			}
		case *network.EventRequestWillBeSent:
			if !isLocal(e.Request.URL) {
				b.complain("it asks for %s", e.Request.URL)
			}
		}
	})).To(Succeed())
}

// refused are the addresses that specs ask for to be refused.
var refused = []string{"/open?key=none", "/placement?name=nowhere"}

// isRefusal is true for what the browser says of an answer that a spec wants, and of the stream
// of events, which ends with the page that listens to it.
func isRefusal(address, text string) bool {
	return strings.Contains(text, "net::ERR_ABORTED") ||
		slices.ContainsFunc(refused, func(path string) bool { return strings.HasSuffix(address, path) })
}

// isLocal is true for the console's own addresses and for the file that opens it.
func isLocal(address string) bool {
	host, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), ":")
	return strings.HasPrefix(address, "http://") && strings.HasSuffix(host, ".localhost") || strings.HasPrefix(address, "file:///") || strings.HasPrefix(address, "data:")
}

func (b *browser) complain(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, fmt.Sprintf(format, args...))
}

// told are the complaints so far.
func (b *browser) told() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.complaints...)
}

// call sends the tab a command of Chromium's protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) R {
	GinkgoHelper()
	result, err := chromedp.Call(b.tab, command, params)
	Expect(err).NotTo(HaveOccurred())
	return result
}

// show leads the tab to a page.
func (b *browser) show(path string) {
	GinkgoHelper()
	Expect(chromedp.Do(b.tab, chromedp.Navigate(b.base+path))).To(Succeed())
	Eventually(func() string { return b.text("document.querySelector('h1').textContent") }).ShouldNot(HavePrefix("no answer"), path)
}

// text is a script's string, or what its promise comes to, or why there is none: a page that
// is just being left has no answer.
func (b *browser) text(script string) string {
	GinkgoHelper()
	text, err := chromedp.Run(b.tab, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	if err != nil {
		return "no answer: " + err.Error()
	}
	return text
}

// press follows the first link, or presses the first button, of that text.
func (b *browser) press(text string) {
	GinkgoHelper()
	b.text(fmt.Sprintf("(() => { const it = [...document.querySelectorAll('main a, main button')].find((e) => e.textContent.trim().startsWith(%q)); setTimeout(() => it.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))); return it.textContent; })()", text))
}

// main is the text that people read on the page.
func (b *browser) main() string {
	GinkgoHelper()
	return b.text("document.getElementById('main').innerText")
}

// scheme has the browser prefer light or dark.
func (b *browser) scheme(name string) {
	GinkgoHelper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}})
}

// finding is a rule of axe-core that a page breaks.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// examine returns what axe-core finds serious or worse on the page.
func (b *browser) examine() []finding {
	GinkgoHelper()
	found := b.text(axe + "; axe.run(document, {resultTypes: ['violations']}).then((r) => JSON.stringify(r.violations))")
	var all []finding
	Expect(json.Unmarshal([]byte(found), &all)).To(Succeed())
	serious := []finding{}
	for _, f := range all {
		if f.Impact == "serious" || f.Impact == "critical" {
			serious = append(serious, f)
		}
	}
	return serious
}

// picture keeps what the window shows where artifacts are kept.
func (b *browser) picture(name string) {
	GinkgoHelper()
	folder := os.Getenv(artifacts.Folder)
	if folder == "" {
		return
	}
	png, err := chromedp.Run(b.tab, chromedp.CaptureScreenshot())
	Expect(err).NotTo(HaveOccurred())
	folder = filepath.Join(folder, "console")
	Expect(os.MkdirAll(folder, 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(folder, name+".png"), png, 0o644)).To(Succeed())
}
