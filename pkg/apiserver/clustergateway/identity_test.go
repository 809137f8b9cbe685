// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

func TestImpersonate_PrefixesSystemNames(t *testing.T) {
	cases := map[string]struct {
		reason string
		caller user.DefaultInfo
		want   Impersonation
		groups map[string]string
		// refused is part of the refusal; empty means none.
		refused string
	}{
		"OrdinaryUser": {
			reason: "uid and extra stay on the hub; the member adds system:authenticated by itself.",
			caller: user.DefaultInfo{
				Name: "jane", UID: "1", Groups: []string{"ops", "devs", "system:authenticated", "devs", ""},
				Extra: map[string][]string{"authentication.kubernetes.io/credential-id": {"x"}},
			},
			want: Impersonation{User: "jane", Groups: []string{"devs", "ops"}},
		},
		"HubServiceAccount": {
			reason: "The member may have an account of the same name.",
			caller: user.DefaultInfo{Name: "system:serviceaccount:ci:deployer", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:ci"}},
			want:   Impersonation{User: "hub:system:serviceaccount:ci:deployer"},
		},
		"Controller": {
			caller: user.DefaultInfo{Name: "system:kube-scheduler"},
			want:   Impersonation{User: "hub:system:kube-scheduler"},
		},
		"Node": {
			reason: "A node of the hub is none of the member's.",
			caller: user.DefaultInfo{Name: "system:node:n1", Groups: []string{"system:nodes"}},
			want:   Impersonation{User: "hub:system:node:n1"},
		},
		"Masters":       {caller: user.DefaultInfo{Name: "admin", Groups: []string{"devs", "system:masters"}}, refused: "use an ordinary user"},
		"MastersRemedy": {caller: user.DefaultInfo{Name: "admin", Groups: []string{"system:masters"}}, refused: "fleetgate.io/identity=ServiceAccount, or map the group"},
		"Kubeadm":       {caller: user.DefaultInfo{Name: "kubernetes-admin", Groups: []string{"kubeadm:cluster-admins"}}, refused: "group kubeadm:cluster-admins"},
		"MappedMasters": {
			reason: "The gateway's configuration names the member's group.",
			caller: user.DefaultInfo{Name: "admin", Groups: []string{"devs", "system:masters", "system:authenticated"}},
			groups: map[string]string{"system:masters": "fleet-admins"},
			want:   Impersonation{User: "admin", Groups: []string{"devs", "fleet-admins"}},
		},
		"MappedKubeadm": {
			reason: "The member has an administrator of the same name.",
			caller: user.DefaultInfo{Name: "kubernetes-admin", Groups: []string{"kubeadm:cluster-admins"}},
			groups: map[string]string{"kubeadm:cluster-admins": "fleet-admins"},
			want:   Impersonation{User: "hub:kubernetes-admin", Groups: []string{"fleet-admins"}},
		},
		"OneOfTwoMapped": {
			caller:  user.DefaultInfo{Name: "admin", Groups: []string{"kubeadm:cluster-admins", "system:masters"}},
			groups:  map[string]string{"kubeadm:cluster-admins": "fleet-admins"},
			refused: "group system:masters",
		},
		"MappedOrdinaryGroup": {
			caller: user.DefaultInfo{Name: "jane", Groups: []string{"devs", "ops"}},
			groups: map[string]string{"devs": "ops"},
			want:   Impersonation{User: "jane", Groups: []string{"ops"}},
		},
		"NoName":        {caller: user.DefaultInfo{Groups: []string{"devs"}}, refused: "no name"},
		"TakenPrefix":   {reason: "Nobody may be named as a prefixed account is.", caller: user.DefaultInfo{Name: "hub:system:serviceaccount:ci:deployer"}, refused: "kept for"},
		"NewlineInName": {caller: user.DefaultInfo{Name: "jane\r\nImpersonate-Group: x"}, refused: "header"},
		"SpaceAround":   {reason: "Spaces are lost on the way.", caller: user.DefaultInfo{Name: "jane "}, refused: "header"},
		"NewlineInGroup": {
			caller: user.DefaultInfo{Name: "jane", Groups: []string{"a\nb"}}, refused: "groups",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, refusal := Impersonate(&tc.caller, tc.groups)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n(-want +got):\n%s", tc.reason, diff)
			}
			if (tc.refused == "") != (refusal == "") || !strings.Contains(refusal, tc.refused) {
				t.Errorf("%s\ngot refusal %q, want one with %q", tc.reason, refusal, tc.refused)
			}
		})
	}
}

func TestCheckIdentity_FailsUnlessIdentityIsExact(t *testing.T) {
	as := Impersonation{User: "jane", Groups: []string{"a", "b"}}
	cases := map[string]struct {
		change func(http.Header)
		ok     bool
	}{
		"AsSet":         {change: func(http.Header) {}, ok: true},
		"Upgrade":       {change: func(h http.Header) { h.Set("Connection", "Upgrade"); h.Set("Upgrade", "websocket") }, ok: true},
		"SecondUser":    {change: func(h http.Header) { h.Add("Impersonate-User", "root") }},
		"OtherUser":     {change: func(h http.Header) { h.Set("Impersonate-User", "root") }},
		"MoreGroups":    {change: func(h http.Header) { h.Add("Impersonate-Group", "c") }},
		"LessGroups":    {change: func(h http.Header) { h.Del("Impersonate-Group") }},
		"NoUser":        {change: func(h http.Header) { h.Del("Impersonate-User") }},
		"Uid":           {change: func(h http.Header) { h.Set("Impersonate-Uid", "1") }},
		"Extra":         {change: func(h http.Header) { h.Set("Impersonate-Extra-Scopes", "x") }},
		"LowerCase":     {change: func(h http.Header) { h["impersonate-user"] = []string{"root"} }},
		"Underscore":    {change: func(h http.Header) { h["Impersonate_user"] = []string{"root"} }},
		"Authorization": {change: func(h http.Header) { h.Set("Authorization", "Bearer x") }},
		"RemoteUser":    {change: func(h http.Header) { h.Set("X-Remote-User", "root") }},
		"Nominated":     {change: func(h http.Header) { h.Set("Connection", "Impersonate-User") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Accept": {"*/*"}}
			setIdentity(h, as)
			tc.change(h)
			if err := checkIdentity(h, as); (err == nil) != tc.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestStripIdentity_KeepsOtherHeaders(t *testing.T) {
	h := http.Header{
		"Accept": {"*/*"}, "Audit-Id": {"1"}, "Sec-Websocket-Protocol": {"a", "base64url.bearer.authorization.k8s.io.eA, b"},
		"Authorization": {"x"}, "Impersonate-User": {"x"}, "X-Remote-Group": {"x"}, "X_remote_user": {"x"}, "Cookie": {"x"},
	}
	stripIdentity(h)
	if diff := cmp.Diff(http.Header{"Accept": {"*/*"}, "Audit-Id": {"1"}, "Sec-Websocket-Protocol": {"a, b"}}, h); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestImpersonation_KeyDiffersForDifferentPairs(t *testing.T) {
	a := Impersonation{User: "a", Groups: []string{"b c"}}
	b := Impersonation{User: "a", Groups: []string{"b", "c"}}
	c := Impersonation{User: "a b", Groups: []string{"c"}}
	if a.key() == b.key() || b.key() == c.key() || a.key() == c.key() {
		t.Errorf("%q, %q and %q are not all different", a.key(), b.key(), c.key())
	}
}

// FuzzIdentityHeaders sends a caller's header names and values through the header handling of a
// request. Whatever they are, the sent request carries exactly the chosen identity, or it is not
// sent.
func FuzzIdentityHeaders(f *testing.F) {
	for _, name := range []string{
		"Impersonate-User", "impersonate-user", "Impersonate_User", "IMPERSONATE-EXTRA-X", "X-Remote-Group", "Authorization", "Cookie", "Connection",
		"Sec-WebSocket-Protocol", "X-Forwarded-For", "Impersonate-Uid", "Proxy-Authorization", "Te", "Trailer", "", "A b",
	} {
		f.Add(name, "system:masters", "Connection", "Impersonate-User, "+name, true)
		f.Add(name, "base64url.bearer.authorization.k8s.io.eA", name, "upgrade", false)
	}
	as := Impersonation{User: "jane", Groups: []string{"a", "b"}}
	f.Fuzz(func(t *testing.T, name1, value1, name2, value2 string, canonical bool) {
		in := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/"}, Header: http.Header{}}
		for _, h := range [][2]string{{name1, value1}, {name2, value2}} {
			if canonical {
				in.Header.Add(h[0], h[1])
			} else {
				in.Header[h[0]] = append(in.Header[h[0]], h[1])
			}
		}
		var sent http.Header
		h := &Handler{config: Config{MemberServerName: "member"}, spans: newSpans(noop.NewTracerProvider())}
		proxy := &httputil.ReverseProxy{
			Rewrite: h.rewrite,
			Transport: roundTripperFunc(func(out *http.Request) (*http.Response, error) {
				if err := checkIdentity(out.Header, as); err != nil {
					return nil, err
				}
				sent = out.Header
				return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Header: http.Header{}, Request: out}, nil
			}),
			ErrorHandler: func(http.ResponseWriter, *http.Request, error) {},
			ErrorLog:     log.New(io.Discard, "", 0),
		}
		x := &exchange{request: &Request{Path: "/", RawPath: "/", Info: &apirequest.RequestInfo{}}, rights: rights{as: as}}
		proxy.ServeHTTP(httptest.NewRecorder(), in.WithContext(context.WithValue(t.Context(), exchangeKey{}, x)))
		for name, values := range sent {
			switch lower := strings.ReplaceAll(strings.ToLower(name), "_", "-"); {
			case name == headerUser && slices.Equal(values, []string{"jane"}), name == headerGroup && slices.Equal(values, as.Groups):
			case strings.HasPrefix(lower, "impersonate-"), strings.HasPrefix(lower, "x-remote-"), lower == "authorization", lower == "cookie":
				t.Fatalf("%q: %q is sent", name, values)
			case lower == "sec-websocket-protocol" && strings.Contains(strings.ToLower(strings.Join(values, ",")), bearerSubprotocol):
				t.Fatalf("a token is sent as subprotocol: %q", values)
			}
		}
		if sent != nil && (len(sent[headerUser]) != 1 || len(sent[headerGroup]) != 2) {
			t.Fatalf("the identity was lost: %q", sent)
		}
	})
}
