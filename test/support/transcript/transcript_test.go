// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const document = "# A page\n\nAnd so on. This is\n`a.yaml`:\n\n```yaml\na: b\n```\n\n```console\n" +
	"hub$ kubectl get x\nNAME   AGE\none    ...\nmember$ kubectl delete x\n```\n\nand\n\n```\nnot$ typed\n```\n\n" +
	"```console\nhub$ true\n```\n"

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(document), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	want := &Transcript{Files: map[string]string{"a.yaml": "a: b\n"}, Commands: []Command{
		{"hub", "kubectl get x", "NAME   AGE\none    ...\n"}, {"member", "kubectl delete x", ""}, {"hub", "true", ""},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the transcript (-want +got):\n%s", diff)
	}
}

func TestPattern(t *testing.T) {
	shown := Command{Prints: "NAME   AGE\none    ...\n"}
	for printed, want := range map[string]bool{
		"NAME   AGE\none    5s\n": true,
		"NAME   AGE\none    5s":   true,
		"NAME   AGE\ntwo    5s\n": false,
		"Error\nNAME   AGE\none ": false,
	} {
		if got := regexp.MustCompile(shown.Pattern()).MatchString(printed); got != want {
			t.Errorf("%q is what is shown: %t, want %t", printed, got, want)
		}
	}
	several := Command{Prints: "first\n...\nlast\n"}
	if !regexp.MustCompile(several.Pattern()).MatchString("first\nsecond\nthird\nlast\n") {
		t.Error("a line that is a gap does not stand for several")
	}
	if regexp.MustCompile(shown.Pattern()).MatchString("NAME   AGE\none    5s\ntwo    5s\n") {
		t.Error("a gap in a line stands for a further line")
	}
	for _, printed := range []string{"", "one\ntwo\n"} {
		if !regexp.MustCompile(Command{}.Pattern()).MatchString(printed) {
			t.Errorf("a command without shown output must not print %q", printed)
		}
	}
}

func TestPrintedLeavesTheLibrarysLogOut(t *testing.T) {
	const answer = "release \"fleet-agent\" uninstalled\n"
	const waited = "I1127 04:32:10.439246    5811 request.go:690] \"Waited before sending request\" delay=\"1.2s\"\n"
	const ended = "I1130 16:58:15.643029   17688 reflector.go:664] \"Warning: watch ended with error\" type=\"/v1, Kind=Secret\"\n"
	for printed, want := range map[string]string{
		answer:                    answer,
		waited + answer:           answer,
		answer + waited:           answer,
		ended + answer:            answer,
		"Error: " + waited:        "Error: " + waited,
		"I1127 is a name\n":       "I1127 is a name\n",
		"level=WARN msg=\"no\"\n": "level=WARN msg=\"no\"\n",
		"W1127 04:32:10.439246    5811 warnings.go:107] Warning: v1 is old\n" + answer: "W1127 04:32:10.439246    5811 warnings.go:107] Warning: v1 is old\n" + answer,
	} {
		if got := Printed(printed); got != want {
			t.Errorf("of %q there is %q, want %q", printed, got, want)
		}
	}
}
