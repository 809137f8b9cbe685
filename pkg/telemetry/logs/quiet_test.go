// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
)

func TestQuiet_FiltersLibrarySteps(t *testing.T) {
	for name, test := range map[string]struct {
		verbosity int
		want      string
	}{
		"as it is started":  {0, "Joined here"},
		"asked for details": {2, "healthz check failed here, Joined here, Starting EventSource here, Starting workers there"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			logger := newQuiet(funcr.New(func(prefix, args string) {
				message := strings.Split(args, `"msg"="`)[1]
				where := "there"
				if strings.Contains(args, "quiet_test.go") {
					where = "here"
				}
				lines = append(lines, message[:strings.Index(message, `"`)]+" "+where)
			}, funcr.Options{Verbosity: test.verbosity, LogCaller: funcr.All}))
			logger.WithName("controller-runtime").WithName("healthz").Info("healthz check failed")
			logger.Info("Joined")
			logger.WithValues("controller", "work").Info("Starting EventSource")
			logger.WithCallDepth(1).Info("Starting workers")
			if got := strings.Join(lines, ", "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}
