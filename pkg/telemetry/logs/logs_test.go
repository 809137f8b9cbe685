// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package logs

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/textlogger"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestApply_LimitsVerbosityOfEveryFlag(t *testing.T) {
	for name, test := range map[string]struct {
		flags   []string
		limited bool
		all     int
		some    string
	}{
		"nothing":              {},
		"as much as allowed":   {flags: []string{"--v=7"}, all: 7},
		"all that there is":    {flags: []string{"--v=10"}, limited: true, all: MaxVerbosity},
		"one file, by its own": {flags: []string{"--v=2", "--vmodule=request=9,round_trippers=4"}, limited: true, all: 2, some: "request=7,round_trippers=4"},
	} {
		t.Run(name, func(t *testing.T) {
			config, flags := logsapi.NewLoggingConfiguration(), pflag.NewFlagSet("", pflag.ContinueOnError)
			logsapi.AddFlags(config, flags)
			if err := flags.Parse(test.flags); err != nil {
				t.Fatal(err)
			}
			if limited := limit(config); limited != test.limited || int(config.Verbosity) != test.all || logsapi.VModuleConfigurationPflag(&config.VModule).String() != test.some {
				t.Errorf("limited: %t, verbosity %d, %q", limited, config.Verbosity, logsapi.VModuleConfigurationPflag(&config.VModule))
			}
		})
	}
}

func TestApply_AcceptsDefaults(t *testing.T) {
	resetLogs(t)
	if _, err := Apply(logsapi.NewLoggingConfiguration()); err != nil {
		t.Error(err)
	}
}

func resetLogs(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if err := logsapi.ResetForTest(nil); err != nil {
			t.Error(err)
		}
	})
}

func TestApply_SupportsJSON(t *testing.T) {
	resetLogs(t)
	config := logsapi.NewLoggingConfiguration()
	config.Format = logsapi.JSONLogFormat
	if _, err := Apply(config); err != nil {
		t.Error(err)
	}
}

// The client chooses the level: this fails when it starts to log bodies at a lower one.
func TestApply_NoBodyIsLoggedAtHighestVerbosity(t *testing.T) {
	const body = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"token":"c2VjcmV0"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	read := func(verbosity int) string {
		var log strings.Builder
		ctx := klog.NewContext(t.Context(), textlogger.NewLogger(textlogger.NewConfig(textlogger.Verbosity(verbosity), textlogger.Output(&log))))
		clientset, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clientset.CoreV1().Secrets("default").Get(ctx, "s", metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	if log := read(MaxVerbosity); strings.Contains(log, "c2VjcmV0") {
		t.Errorf("wrote:\n%s", log)
	}
	if log := read(MaxVerbosity + 1); !strings.Contains(log, "c2VjcmV0") {
		t.Errorf("one level more would be allowed:\n%s", log)
	}
}
