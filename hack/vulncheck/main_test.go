// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
)

func TestRun_ReportsUnreachableDatabase(t *testing.T) {
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path != "/index/db.json" {
			http.NotFound(w, request)
		}
	}))
	defer there.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, test := range map[string]struct {
		database, command string
		code              int
		out, problems     string
	}{
		"nothing is known":               {there.URL, "echo checked", 0, "checked", ""},
		"something is found":             {there.URL + "/", "echo found; exit 3", 3, "found", ""},
		"a database that is files":       {"file:///tmp/db", "echo checked", 0, "checked", ""},
		"nobody listens":                 {gone.URL, "exit 3", 0, "", "NOT CHECKED"},
		"somebody else answers":          {there.URL + "/other", "exit 3", 0, "", "NOT CHECKED"},
		"an address that is none at all": {"http://\x7f", "exit 3", 0, "", "NOT CHECKED"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, problems bytes.Buffer
			err := run(t.Context(), test.database, []string{"sh", "-c", test.command}, &out, &problems)
			code := 0
			var failed *exec.ExitError
			if errors.As(err, &failed) {
				code = failed.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if strings.TrimSpace(out.String()) != test.out || !strings.HasPrefix(problems.String(), test.problems) {
				t.Errorf("said %q and %q", out.String(), problems.String())
			}
			if test.problems == "" && problems.Len() > 0 {
				t.Errorf("complained: %s", problems.String())
			}
		})
	}
}

func TestRun_RequiresCommand(t *testing.T) {
	if err := run(t.Context(), "", nil, nil, nil); err == nil {
		t.Error("no error without a command")
	}
}
