// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

func TestEndpoint_ForwardsLikeTheHubPath(t *testing.T) {
	g, _ := oneMember(t)
	var asked []string
	var mu sync.Mutex
	g.allowOnly(func(a authorizer.Attributes) bool {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, fmt.Sprintf("%s %s %s/%s %s", a.GetVerb(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource(), a.GetName()))
		return a.GetUser().GetName() == "jane"
	})
	through := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/api/v1/namespaces/a/pods?limit=5", "jane", nil))
	direct := seenBy(t, g.do(http.MethodGet, "/clusters/m1/api/v1/namespaces/a/pods?limit=5", "jane", nil))
	ignored := cmpopts.IgnoreMapEntries(func(name string, _ []string) bool { return name == "Audit-Id" })
	if diff := cmp.Diff(through, direct, ignored); diff != "" {
		t.Errorf("the member sees another request (-through the hub +direct):\n%s", diff)
	}
	const question = "get cluster.core.oam.dev clustergateways/proxy m1"
	if !slices.Equal(asked, []string{question, question}) {
		t.Errorf("the hub reviewed %q", asked)
	}
	wantCode(t, g.do(http.MethodGet, "/clusters/m1/api", "joe", nil), http.StatusForbidden)
	wantCode(t, g.do(http.MethodGet, "/clusters/m1/api", "", nil), http.StatusUnauthorized)
	wantCode(t, g.do(http.MethodGet, "/clusters/other/api", "jane", nil), http.StatusNotFound)
	if got := seenBy(t, g.do(http.MethodGet, "/clusters/m1", "jane", nil)).Path; got != "/" {
		t.Errorf("the member sees path %q", got)
	}
}

func TestEndpoint_RefusesAmbiguousPaths(t *testing.T) {
	g, m := oneMember(t)
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the member got %s", r.RequestURI)
	})
	for _, path := range []string{
		"/clusters/m1/api/../../m2/api", "/clusters/m1/%2e%2e/x", "/clusters/m1//api", "/clusters/m1/a%2fb", "/clusters/m1/a%5cb",
		"/clusters/m1%2fproxy/api", "/clusters/../clusters/m1/api", "//clusters/m1/api", "/clusters//m1/api", "/clusters/",
		"/Clusters/m1/api", "/clusters/m1%00/api",
	} {
		_, _, res := g.raw("GET " + path + " HTTP/1.1\r\nHost: gateway.test\r\nX-Remote-User: jane\r\nConnection: close\r\n\r\n")
		if res.StatusCode < 300 {
			t.Errorf("%s: got %d", path, res.StatusCode)
		}
	}
}

func TestAuthorizeMemberRequests_AuthorizesRequestsOnTheHub(t *testing.T) {
	g, _ := oneMember(t, func(c *apiserver.Config) { c.AuthorizeMemberRequests = true })
	type question struct{ verb, resource, subresource, namespace, name string }
	var inner []question
	var mu sync.Mutex
	g.allowOnly(func(a authorizer.Attributes) bool {
		if a.GetAPIGroup() != clustergateway.InnerGroup {
			return true
		}
		mu.Lock()
		defer mu.Unlock()
		inner = append(inner, question{a.GetVerb(), a.GetResource(), a.GetSubresource(), a.GetNamespace(), a.GetName()})
		return a.GetResource() != "secrets"
	})
	tests := []struct {
		method, path string
		change       []func(*http.Request)
		want         question
		code         int
	}{
		{http.MethodGet, "/api/v1/namespaces/a/pods/p", nil, question{"get", "pods", "", "a", "m1"}, 200},
		{http.MethodGet, "/api/v1/pods", nil, question{"list", "pods", "", "", "m1"}, 200},
		{http.MethodGet, "/api/v1/pods?watch=1", nil, question{"watch", "pods", "", "", "m1"}, 200},
		{http.MethodGet, "/api/v1/namespaces/a/pods/p/log", nil, question{"get", "pods", "log", "a", "m1"}, 200},
		{http.MethodDelete, "/apis/apps/v1/namespaces/a/deployments", nil, question{"deletecollection", "deployments.apps", "", "a", "m1"}, 200},
		{http.MethodPatch, "/apis/apps/v1/namespaces/a/deployments/d/scale", nil, question{"patch", "deployments.apps", "scale", "a", "m1"}, 200},
		{http.MethodGet, "/version", nil, question{"get", "nonresource", "", "", "m1"}, 200},
		{http.MethodHead, "/readyz", nil, question{"get", "nonresource", "", "", "m1"}, 200},
		{http.MethodPost, "/healthz", nil, question{"post", "nonresource", "", "", "m1"}, 200},
		{http.MethodGet, "/api/v1/namespaces/a/secrets/s", nil, question{"get", "secrets", "", "a", "m1"}, 403},
	}
	for _, tt := range tests {
		t.Run(tt.method+tt.path, func(t *testing.T) {
			mu.Lock()
			inner = nil
			mu.Unlock()
			wantCode(t, g.do(tt.method, prefix+"m1/proxy"+tt.path, "jane", nil, tt.change...), tt.code)
			if !slices.Equal(inner, []question{tt.want}) {
				t.Errorf("the hub reviewed %v, want %v", inner, tt.want)
			}
		})
	}
	inner = nil
	_, _, res := g.raw("GET " + prefix + "m1/proxy/api/v1/namespaces/a/pods/p/exec HTTP/1.1\r\nHost: gateway.test\r\nX-Remote-User: jane\r\n" +
		"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_ = res.Body.Close()
	if want := (question{"create", "pods", "exec", "a", "m1"}); !slices.Equal(inner, []question{want}) {
		t.Errorf("for exec the hub reviewed %v, want %v", inner, want)
	}
}

func TestAuthorizeMemberRequests_RunsBeforeInventoryLookup(t *testing.T) {
	g, _ := oneMember(t, func(c *apiserver.Config) { c.AuthorizeMemberRequests = true })
	g.allowOnly(func(a authorizer.Attributes) bool { return a.GetAPIGroup() != clustergateway.InnerGroup })
	for _, name := range []string{"m1", "unknown"} {
		wantCode(t, g.do(http.MethodGet, prefix+name+"/proxy/api/v1/pods", "jane", nil), http.StatusForbidden)
	}
}

func TestLimits_OneUserCannotUseAllCapacity(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	slow := newMember(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Impersonate-User") == "greedy" && r.URL.Query().Get("watch") == "" {
			started <- struct{}{}
			<-release
		}
		echo(w, r)
	}))
	g := newGateway(t, map[string]*member{"m1": slow, "m2": newMember(t, http.HandlerFunc(echo))},
		func(c *apiserver.Config) { c.MaxInFlightPerUser = 2 })
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if got := g.do(http.MethodGet, prefix+"m1/proxy/version", "greedy", nil).StatusCode; got != http.StatusOK {
				t.Errorf("got %d", got)
			}
		})
		<-started
	}
	for _, name := range []string{"m1", "m2"} {
		res := g.do(http.MethodGet, prefix+name+"/proxy/version", "greedy", nil)
		wantCode(t, res, http.StatusTooManyRequests)
		status := statusOf(t, res)
		if status.Reason != metav1.StatusReasonTooManyRequests || !strings.Contains(status.Message, "the gateway has 2 requests of this user in flight") || res.Header.Get("Retry-After") != "1" {
			t.Errorf("got %+v", status)
		}
	}
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/api/v1/pods?watch=true", "greedy", nil), http.StatusOK)
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil), http.StatusOK)
	close(release)
	wg.Wait()
	wantCode(t, g.do(http.MethodGet, prefix+"m2/proxy/version", "greedy", nil), http.StatusOK)
}

func TestProxy_UsesGatewayAccountForLabelledMember(t *testing.T) {
	g, m := oneMember(t)
	own := memberCluster("m1", 100, "fleetgate.io/identity=ServiceAccount")
	g.inform.handler.OnUpdate(nil, own)
	for _, user := range []string{"jane", "system:serviceaccount:a:b"} {
		got := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/api", user, nil,
			header("X-Remote-Group", "system:masters"), header("Impersonate_User", "root")))
		if got.Header.Get("Authorization") != "Bearer token-1" {
			t.Error("the member gets another token than the gateway's")
		}
		for name := range got.Header {
			if strings.HasPrefix(strings.ToLower(name), "impersonate") || strings.HasPrefix(name, "X-Remote") {
				t.Errorf("the member gets header %s", name)
			}
		}
	}
	if asked := m.asked.Load(); asked != 0 {
		t.Errorf("the agent got %d requests", asked)
	}
	for i, label := range []string{"fleetgate.io/identity=Impersonate", "fleetgate.io/identity=nonsense", "x=y"} {
		g.inform.handler.OnUpdate(nil, memberCluster("m1", 101+i, label))
		if got := seenBy(t, g.do(http.MethodGet, prefix+"m1/proxy/api", "jane", nil)).Header.Get("Impersonate-User"); got != "jane" {
			t.Errorf("with %s the member sees %q", label, got)
		}
	}
}

// records collects the records of a gateway.
type records struct {
	mu   sync.Mutex
	all  []clustergateway.Record
	more chan struct{}
}

func (r *records) keep(_ context.Context, record clustergateway.Record) {
	r.mu.Lock()
	r.all = append(r.all, record)
	r.mu.Unlock()
	r.more <- struct{}{}
}

func (r *records) next(t *testing.T) clustergateway.Record {
	t.Helper()
	<-r.more
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.all[0]
	r.all = r.all[1:]
	return record
}

func TestRecorder_RecordsEachRequest(t *testing.T) {
	kept := &records{more: make(chan struct{}, 100)}
	g, m := oneMember(t, func(c *apiserver.Config) { c.Recorder = kept.keep })
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", r.Header.Get("Audit-Id")) // A header that passes.
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = io.WriteString(w, "12345")
	})
	tests := map[string]struct {
		method, path, user string
		want               clustergateway.Record
	}{
		"resource": {http.MethodGet, prefix + "m1/proxy/apis/apps/v1/namespaces/a/deployments/d/scale", "jane", clustergateway.Record{
			User: "jane", As: "jane", Member: "m1", Verb: "get", APIGroup: "apps", Resource: "deployments", Subresource: "scale", Namespace: "a", Name: "d", Code: 200, Bytes: 5}},
		"refused by the member": {http.MethodPut, prefix + "m1/proxy/api/v1/namespaces/a/configmaps/c", "system:serviceaccount:a:b", clustergateway.Record{
			User: "system:serviceaccount:a:b", As: "hub:system:serviceaccount:a:b", Member: "m1", Verb: "update", Resource: "configmaps", Namespace: "a", Name: "c", Code: 409, Bytes: 5}},
		"no resource": {http.MethodGet, "/clusters/m1/version", "jane", clustergateway.Record{
			User: "jane", As: "jane", Member: "m1", Verb: "get", Path: "/version", Code: 200, Bytes: 5}},
		"unknown member": {http.MethodGet, prefix + "unknown/proxy/version", "jane", clustergateway.Record{
			User: "jane", Member: "unknown", Verb: "get", Path: "/version", Code: 404}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			res := g.do(tt.method, tt.path, tt.user, nil, header("Authorization", "Bearer secret-of-the-caller"), header("Audit-Id", "id-of-the-hub"))
			_ = text(t, res)
			got := kept.next(t)
			ignored := cmpopts.IgnoreFields(clustergateway.Record{}, "Began", "Took")
			tt.want.AuditID = "id-of-the-hub"
			if tt.want.Code == http.StatusNotFound {
				tt.want.Bytes = got.Bytes
			}
			if diff := cmp.Diff(tt.want, got, ignored); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
			if seen := res.Header.Get("Etag"); tt.want.As != "" && seen != "id-of-the-hub" {
				t.Errorf("the member got audit ID %q", seen)
			}
		})
	}
}

func TestAudit_EventNamesIdentityOnMember(t *testing.T) {
	dir := t.TempDir()
	policy, path := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	// Even at the highest level, bodies and headers must not be logged.
	if err := os.WriteFile(policy, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g, _ := oneMember(t, func(c *apiserver.Config) { c.AuditPolicyFile, c.AuditLogPath = policy, path })
	res := g.do(http.MethodPut, "/clusters/m1/api/v1/namespaces/a/secrets/s", "system:serviceaccount:a:b", strings.NewReader("secret-of-the-body"),
		header("Authorization", "Bearer secret-of-the-caller"), header("Audit-Id", "id-of-the-hub"))
	_ = text(t, res)
	var event auditv1.Event
	var log []byte
	for deadline := time.Now().Add(20 * time.Second); event.Stage != auditv1.StageResponseComplete || event.AuditID != "id-of-the-hub"; {
		if time.Now().After(deadline) {
			t.Fatalf("no event of the request: %s", log)
		}
		var err error
		if log, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(log) {
			if err := json.Unmarshal(line, &event); err != nil {
				break // It is still being written.
			}
			if event.AuditID == "id-of-the-hub" && event.Stage == auditv1.StageResponseComplete {
				break
			}
		}
	}
	if event.Annotations[clustergateway.AnnotationMember] != "m1" || event.Annotations[clustergateway.AnnotationAs] != "hub:system:serviceaccount:a:b" {
		t.Errorf("annotations are %v", event.Annotations)
	}
	if event.User.Username != "system:serviceaccount:a:b" || event.ResponseStatus.Code != http.StatusOK || event.RequestURI != prefix+"m1/proxy/api/v1/namespaces/a/secrets/s" {
		t.Errorf("event is %+v", event)
	}
	if strings.Contains(string(log), "secret-of") {
		t.Errorf("the log holds what it must not: %s", log)
	}
}

func TestRecorder_CountsBytesOfUpgrade(t *testing.T) {
	kept := &records{more: make(chan struct{}, 100)}
	g, m := oneMember(t, func(c *apiserver.Config) { c.Recorder = kept.keep })
	m.serve(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n0123456789")
		_ = conn.Close()
	})
	_, reader, res := g.raw("POST " + prefix + "m1/proxy/api/v1/namespaces/a/pods/p/exec HTTP/1.1\r\nHost: gateway.test\r\n" +
		"X-Remote-User: jane\r\nConnection: Upgrade\r\nUpgrade: x\r\nContent-Length: 0\r\n\r\n")
	wantCode(t, res, http.StatusSwitchingProtocols)
	if got, err := io.ReadAll(bufio.NewReader(reader)); string(got) != "0123456789" {
		t.Errorf("got %q, %v", got, err)
	}
	got := kept.next(t)
	if got.Code != http.StatusSwitchingProtocols || got.Bytes != 10 || got.Subresource != "exec" || got.As != "jane" {
		t.Errorf("record is %+v", got)
	}
}
