// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"fleetgate.io/fleetgate/pkg/apiserver/paths"
)

// request parses a request line as a server does. It fails for lines that no server would accept.
func request(method, target string, headers ...string) (*http.Request, error) {
	lines := append([]string{method + " " + target + " HTTP/1.1", "Host: h"}, headers...)
	return http.ReadRequest(bufio.NewReader(strings.NewReader(strings.Join(lines, "\r\n") + "\r\n\r\n")))
}

func TestParse_ReadsMemberPathAndVerb(t *testing.T) {
	type want struct {
		Path, RawPath, Verb, Resource, Subresource, Namespace, Name string
		Upgrade, LongRunning, DeletesCollection                     bool
	}
	const pods = "m1/proxy/api/v1/namespaces/a/pods"
	const service, node = "m1/proxy/api/v1/namespaces/a/services/s/proxy", "m1/proxy/api/v1/nodes/n/proxy"
	cases := map[string]struct {
		reason  string
		method  string
		path    string
		headers []string
		want    want
	}{
		"Root": {
			reason: "Nothing after the subresource is the member's root.",
			path:   "m1/proxy", want: want{Path: "/", RawPath: "/", Verb: "get"},
		},
		"Get": {
			path: pods + "/p",
			want: want{Path: "/api/v1/namespaces/a/pods/p", RawPath: "/api/v1/namespaces/a/pods/p", Verb: "get", Resource: "pods", Namespace: "a", Name: "p"},
		},
		"List": {
			path: pods + "?limit=5",
			want: want{Path: "/api/v1/namespaces/a/pods", RawPath: "/api/v1/namespaces/a/pods", Verb: "list", Resource: "pods", Namespace: "a"},
		},
		"Watch": {
			reason: "A watch lasts.",
			path:   pods + "?watch=1",
			want:   want{Path: "/api/v1/namespaces/a/pods", RawPath: "/api/v1/namespaces/a/pods", Verb: "watch", Resource: "pods", Namespace: "a", LongRunning: true},
		},
		"Logs": {
			reason: "Logs may be long, or followed.",
			path:   pods + "/p/log",
			want:   want{Path: "/api/v1/namespaces/a/pods/p/log", RawPath: "/api/v1/namespaces/a/pods/p/log", Verb: "get", Resource: "pods", Subresource: "log", Namespace: "a", Name: "p", LongRunning: true},
		},
		"Exec": {
			path: pods + "/p/exec?command=sh", headers: []string{"Connection: Upgrade", "Upgrade: websocket"},
			want: want{Path: "/api/v1/namespaces/a/pods/p/exec", RawPath: "/api/v1/namespaces/a/pods/p/exec", Verb: "get", Resource: "pods", Subresource: "exec", Namespace: "a", Name: "p", Upgrade: true, LongRunning: true},
		},
		"UpgradeWithoutConnection": {
			reason: "One of the two headers is enough to ask for more rights.",
			path:   "m1/proxy/api", headers: []string{"Upgrade: websocket"},
			want: want{Path: "/api", RawPath: "/api", Verb: "get", Upgrade: true, LongRunning: true},
		},
		"DeleteCollection": {
			method: http.MethodDelete, path: pods,
			want: want{Path: "/api/v1/namespaces/a/pods", RawPath: "/api/v1/namespaces/a/pods", Verb: "deletecollection", Resource: "pods", Namespace: "a", DeletesCollection: true},
		},
		"BehindService": {
			reason: "The path of an application passes as it is.",
			path:   service + "//repository/group%2Fproject/%2Etxt/a%5Cb//",
			want:   want{Path: "/api/v1/namespaces/a/services/s/proxy//repository/group/project/.txt/a\\b//", RawPath: "/api/v1/namespaces/a/services/s/proxy//repository/group%2Fproject/%2Etxt/a%5Cb//", Verb: "get", Resource: "services", Subresource: "proxy", Namespace: "a", Name: "s", LongRunning: true},
		},
		"BehindNode": {
			path: node + "/logs//a%2fb",
			want: want{Path: "/api/v1/nodes/n/proxy/logs//a/b", RawPath: "/api/v1/nodes/n/proxy/logs//a%2fb", Verb: "get", Resource: "nodes", Subresource: "proxy", Name: "n", LongRunning: true},
		},
		"Encoded": {
			reason: "What is encoded stays so on the wire.",
			path:   "m1/proxy/api/v1/namespaces/a/services/https%3As%3A1/proxy/x%20y",
			want:   want{Path: "/api/v1/namespaces/a/services/https:s:1/proxy/x y", RawPath: "/api/v1/namespaces/a/services/https%3As%3A1/proxy/x%20y", Verb: "get", Resource: "services", Subresource: "proxy", Namespace: "a", Name: "https:s:1", LongRunning: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			method := tc.method
			if method == "" {
				method = http.MethodGet
			}
			r, err := request(method, paths.Member+tc.path, tc.headers...)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Parse(r)
			if err != nil || got == nil {
				t.Fatalf("%s\nParse: %v, %v", tc.reason, got, err)
			}
			if got.Member != "m1" {
				t.Errorf("got member %q", got.Member)
			}
			if diff := cmp.Diff(tc.want, want{
				Path: got.Path, RawPath: got.RawPath, Verb: got.Info.Verb, Resource: got.Info.Resource,
				Subresource: got.Info.Subresource, Namespace: got.Info.Namespace, Name: got.Info.Name,
				Upgrade: got.Upgrade, LongRunning: got.LongRunning, DeletesCollection: got.DeletesCollection(method),
			}); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParse_IgnoresOtherPaths(t *testing.T) {
	for _, path := range []string{
		"/healthz", paths.Member, paths.Member + "m1", paths.Member + "m1/health", paths.Member + "m1/proxyx",
		paths.Member + "/proxy", "/apis/cluster.core.oam.dev/v1beta1/clustergateways/m1/proxy",
		"/apis/cluster.core.oam.dev/v1alpha1/namespaces/a/clustergateways/m1/proxy",
	} {
		got, err := Parse(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}})
		if got != nil || err != nil {
			t.Errorf("%s: got %v, %v", path, got, err)
		}
	}
}

func TestParse_RefusesAmbiguousPaths(t *testing.T) {
	const service = "m1/proxy/api/v1/namespaces/a/services/s/proxy"
	for _, path := range []string{
		"m1/proxy/..", "m1/proxy/../x", "m1/proxy/a/../../b", "m1/proxy/./a", "m1/proxy//a", "m1/proxy/a//b", "m1/proxy/a//",
		"m1/proxy/%2e%2e/a", "m1/proxy/%2E./a", "m1/proxy/a%2fb", "m1/proxy/a%2F..%2Fb", "m1/proxy/a%5cb", `m1/proxy/a\b`,
		"m1/proxy/a%00", "m1/proxy/a%0d%0ab", "m1/proxy/a%7f", "%6d1/proxy/a", "m1/%70roxy/a", "m1/proxy/api/v1/watch",
		service + "/a/../b", service + "/a%2F..%2Fb", service + "/%2e%2e/b", service + "/a%5c..%5Cb", service + "/a%0ab", service + "/./",
		"m1/proxy/api/v1/namespaces/a%2Fb/services/s/proxy/a", "m1/proxy/api/v1/namespaces/a/services//proxy/a//b",
		"m1/proxy/api/v1/namespaces/a/services/s/%70roxy/a//b", "m1/proxy/api/v1/namespaces/a/services/s/status/a//b",
		"m1/proxy/api/v1/namespaces/a/secrets/s/proxy/a//b", "m1/proxy/apis/v1/nodes/n/proxy/a//b", "m1/proxy/api/v1/namespaces/../pods/p/proxy//b",
	} {
		r, err := request(http.MethodGet, paths.Member+path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if got, err := Parse(r); err == nil {
			t.Errorf("%s: got %+v, want a refusal", path, got)
		}
	}
}

// received is how a member's API server reads the bytes that it gets.
func received(r *http.Request, inner *Request) (*apirequest.RequestInfo, error) {
	arrived, err := request(r.Method, inner.URL().RequestURI())
	if err != nil {
		return nil, err
	}
	return memberRequestInfo.NewRequestInfo(arrived)
}

func TestRequest_ForwardsTheAuthorizedPath(t *testing.T) {
	for _, path := range []string{
		"/", "/api", "/apis/apps/v1/namespaces/a/deployments/d/scale", "/api/v1/namespaces/a/pods?watch=true&fieldSelector=metadata.name%3Dx",
		"/api/v1/namespaces/a/services/s:http/proxy/a%20b%3Fc", "/api/v1/namespaces/a/services/s/proxy//a%2Fb//c", "/api/v1/nodes/n/proxy//a%2Fb/proxy/", "/api/v1/watch/pods", "/apis/x/v1/é/%C3%A9", "/api/v1/namespaces/%25/pods/",
	} {
		r, err := request(http.MethodGet, paths.Member+"m1/proxy"+path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		inner, err := Parse(r)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		got, err := received(r, inner)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff(inner.Info, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-authorized +received):\n%s", path, diff)
		}
	}
}

func FuzzProxyPath(f *testing.F) {
	for _, path := range []string{
		"/", "/api/v1/namespaces/a/pods/p", "/api/v1/%2e%2e/x", "/a//b", "/a%2fb", "/a\\b", "/a;b=c/d", "/a%3Fb?c#d", "/%", "/é", "/a b",
		"/api/v1/namespaces/ok/pods/../../kube-system/secrets/x", "?watch=true", "/..%252f..", "/api/v1/watch/namespaces/a/pods",
		"/api/v1/namespaces/a/services/s/proxy//b%2Fc/%2e/d", "/api/v1/nodes/n/proxy/a%5c..%5cb",
	} {
		f.Add("GET", path)
		f.Add("DELETE", path)
	}
	f.Fuzz(func(t *testing.T, method, path string) {
		if len(method) > 16 || len(path) > 4096 {
			return
		}
		r, err := request(method, paths.Member+"m1/proxy"+path)
		if err != nil {
			return
		}
		outer, err := memberRequestInfo.NewRequestInfo(r)
		if err != nil {
			return
		}
		inner, err := Parse(r)
		if err != nil || inner == nil {
			return
		}
		if outer.Name != inner.Member || outer.Subresource != "proxy" || outer.Namespace != "" {
			t.Fatalf("%q: authorized for %q/%q, forwarded to %q", path, outer.Name, outer.Subresource, inner.Member)
		}
		got, err := received(r, inner)
		if err != nil {
			t.Fatalf("%q is forwarded as %q, which no server takes: %v", path, inner.URL().RequestURI(), err)
		}
		if diff := cmp.Diff(inner.Info, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%q: (-authorized +received):\n%s", path, diff)
		}
		for _, part := range strings.Split(got.Path, "/") {
			if part == "." || part == ".." {
				t.Fatalf("%q: the member gets %q", path, got.Path)
			}
		}
	})
}
