// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"encoding/json"
	"fmt"
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/env"
)

// clockVariable says by how many seconds the clock of a program is wrong that was built with
// another clock.
const clockVariable = "FLEETGATE_TEST_CLOCK"

// What tells the time of day in Go's runtime, and what tells a wrong one. How much time has
// gone by stays right, as it does on a machine whose clock is wrong.
const (
	clockTells      = "\treturn time_now()\n}\n"
	clockTellsWrong = `	sec, nsec, mono = time_now()
	return sec + clockError(), nsec, mono
}

var clockWrongBy, clockKnown int64

// clockError reads the environment once.
func clockError() int64 {
	if clockKnown == 0 {
		text, sign, wrongBy := gogetenv("` + clockVariable + `"), int64(1), int64(0)
		for i := 0; i < len(text); i++ {
			if text[i] == '-' {
				sign = -1
				continue
			}
			wrongBy = 10*wrongBy + int64(text[i]-'0')
		}
		clockWrongBy, clockKnown = sign*wrongBy, 1
	}
	return clockWrongBy
}
`
)

// WithClock is the path of a program of ours, gateway or agent, whose clock is ahead by so much,
// or behind if that is negative. It is built with a runtime of Go's that tells another time of day, which
// takes minutes once.
func WithClock(ctx context.Context, name string, ahead time.Duration) string {
	ginkgo.GinkgoHelper()
	home, err := env.Home()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	dir := ginkgo.GinkgoT().TempDir()

	original := filepath.Join(build.Default.GOROOT, "src", "runtime", "time.go")
	source, err := os.ReadFile(original)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	gomega.Expect(strings.Count(string(source), clockTells)).To(gomega.Equal(1), "%s tells the time in another way", original)
	// Where it is stays the same, so that the build is reused.
	wrong := filepath.Join(home, "clock", "time.go")
	gomega.Expect(os.MkdirAll(filepath.Dir(wrong), 0o755)).To(gomega.Succeed())
	gomega.Expect(os.WriteFile(wrong, []byte(strings.Replace(string(source), clockTells, clockTellsWrong, 1)), 0o644)).To(gomega.Succeed())
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {original: wrong}})
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	overlaid := filepath.Join(dir, "overlay.json")
	gomega.Expect(os.WriteFile(overlaid, overlay, 0o644)).To(gomega.Succeed())

	program := built(ctx, filepath.Join(home, "clock"), name, "-overlay="+overlaid)
	script := filepath.Join(dir, name)
	text := fmt.Sprintf("#!/bin/sh\n%s=%d exec %s \"$@\"\n", clockVariable, int(ahead.Seconds()), program)
	gomega.Expect(os.WriteFile(script, []byte(text), 0o755)).To(gomega.Succeed())
	return script
}
