// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// answering is a member that answers every request with the same text.
func answering(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
}

func readAll(g *gateway, path string) (*http.Response, string) {
	g.t.Helper()
	res := g.do(http.MethodGet, path, "u", nil)
	content, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return res, string(content)
}

// A member cannot deny a view to everybody.
func TestFleetview_LeavesOutMemberWithMalformedReply(t *testing.T) {
	const list = `{"kind":"PodList","apiVersion":"v1","items":[`
	for name, reply := range map[string]string{
		"no JSON":                    "<html>",
		"a Status":                   `{"kind":"Status","apiVersion":"v1","code":200}`,
		"labels twice in the second": list + `{"metadata":{"name":"bad"}},{"metadata":{"labels":{},"labels":{}}}]}`,
		"text behind the list":       list + `{"metadata":{"name":"bad"}}]} {}`,
	} {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, map[string]*member{"a": newMember(t, answering(reply)), "b": newMember(t, pods("x")), "c": newMember(t, answering(reply))})
			for _, query := range []string{"", "?limit=10", "?limit=1000"} {
				res, body := readAll(g, podsOfAll+query)
				warnings := strings.Join(res.Header.Values("Warning"), " ")
				if res.StatusCode != http.StatusOK || strings.Contains(body, "bad") || !strings.Contains(body, `"x"`) {
					t.Errorf("%s: got %d: %.300s", query, res.StatusCode, body)
				}
				if !strings.Contains(warnings, "2 of 3 members failed") || !strings.Contains(warnings, ": a, c") {
					t.Errorf("%s: got warnings %q", query, warnings)
				}
			}
		})
	}
}

func TestFleetStream_LeavesOutMemberWithMalformedReply(t *testing.T) {
	g := newGateway(t, map[string]*member{"a": newMember(t, answering("<html>")), "b": newMember(t, pods("x"))})
	res, body := readAll(g, podsOfAll+"?stream=true")
	if res.StatusCode != http.StatusOK || !strings.Contains(body, `"x"`) || !strings.Contains(body, "1 of 2 members failed") {
		t.Errorf("got %d: %s", res.StatusCode, body)
	}
}

func TestFleetview_FailsIfAllRepliesAreMalformed(t *testing.T) {
	g := newGateway(t, map[string]*member{"a": newMember(t, answering("<html>")), "b": newMember(t, answering("[]"))})
	for _, query := range []string{"", "?limit=10", "?stream=true"} {
		if res, body := readAll(g, podsOfAll+query); res.StatusCode != http.StatusBadGateway {
			t.Errorf("%s: got %d: %s", query, res.StatusCode, body)
		}
	}
}
