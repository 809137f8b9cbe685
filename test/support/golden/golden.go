// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden holds code to what it said before. What a function answers to
// thousands of random cases is too much to keep; kept are a digest for each block
// of seeds, which shows that something has changed and where, and some answers in
// full, which show what a change looks like.
//
// `go test -update` rewrites the files. To see a difference that only a digest
// shows, print the block by both versions of the code and compare:
// `go test -run <test> -v -block 1200`.
package golden

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	update = flag.Bool("update", false, "rewrite the golden files")
	block  = flag.Int("block", -1, "print what is answered to the block of seeds that begins here")
)

const (
	// perBlock is how many seeds share a digest.
	perBlock = 50
	// perExample is every how many seeds an answer is kept in full.
	perExample = 400
)

// Text compares text with testdata/name.
func Text(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("%s (-kept +now):\n%s", file, diff)
	}
}

// Seeds compares what answer says to the seeds from 0 to n-1 with
// testdata/name.examples and testdata/name.digests.
func Seeds(t *testing.T, name string, n int, answer func(seed uint64) string) {
	t.Helper()
	var examples, digests strings.Builder
	for first := 0; first < n; first += perBlock {
		digest := sha256.New()
		for seed := first; seed < min(first+perBlock, n); seed++ {
			said := fmt.Sprintf("== seed %d\n%s", seed, answer(uint64(seed)))
			digest.Write([]byte(said))
			if seed%perExample == 0 {
				examples.WriteString(said)
			}
			if first == *block {
				t.Log(said)
			}
		}
		fmt.Fprintf(&digests, "%d %x\n", first, digest.Sum(nil)[:8])
	}
	Text(t, name+".examples", examples.String())
	Text(t, name+".digests", digests.String())
}
