// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package clustergateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"fleetgate.io/fleetgate/pkg/apiserver/paths"
)

// Request is one request for a member, parsed once from the caller's request.
type Request struct {
	Member string
	// Path is the decoded path that the member gets, RawPath its encoding on the wire; RawQuery is
	// the query as the caller wrote it.
	Path, RawPath, RawQuery string
	// Info is the request as the member's API server will understand it.
	Info *apirequest.RequestInfo
	// Upgrade is true for a request that wants to switch protocols: exec, attach, port-forward.
	Upgrade bool
	// LongRunning is true for a long-running request: it has no time limit and does not count
	// against the limits of short requests.
	LongRunning bool
}

// Parse reads a request for a member. It returns nil without an error if the request is not for a
// member. It returns an error if two readers could understand the path differently.
func Parse(r *http.Request) (*Request, error) {
	member, ok := memberOfPath(r.URL.Path)
	if !ok {
		return nil, nil
	}
	prefix := paths.Member + member + "/proxy"
	raw, ok := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if !ok {
		return nil, fmt.Errorf("the path must begin with %q without percent-encoding", prefix)
	}
	inner := &Request{
		Member:   member,
		Path:     orRoot(strings.TrimPrefix(r.URL.Path, prefix)),
		RawPath:  orRoot(raw),
		RawQuery: r.URL.RawQuery,
		Upgrade:  wantsUpgrade(r.Header),
	}
	if err := inner.checkPath(); err != nil {
		return nil, err
	}
	info, err := memberRequestInfo.NewRequestInfo(&http.Request{Method: r.Method, URL: inner.URL()})
	if err != nil {
		return nil, fmt.Errorf("the path %q is not one of a Kubernetes API server", inner.Path)
	}
	inner.Info = info
	inner.LongRunning = inner.Upgrade || isLongRunning(info)
	return inner, nil
}

// URL is the path and query that the member gets.
func (r *Request) URL() *url.URL {
	return &url.URL{Path: r.Path, RawPath: r.RawPath, RawQuery: r.RawQuery}
}

// DeletesCollection is true for a DELETE of resources that names none.
func (r *Request) DeletesCollection(method string) bool {
	return method == http.MethodDelete && r.Info.IsResourceRequest && r.Info.Name == ""
}

// memberRequestInfo reads paths as every kube-apiserver does.
var memberRequestInfo = &apirequest.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

func memberOfPath(path string) (string, bool) {
	rest, ok := strings.CutPrefix(path, paths.Member)
	if !ok {
		return "", false
	}
	member, tail, _ := strings.Cut(rest, "/")
	return member, member != "" && (tail == "proxy" || strings.HasPrefix(tail, "proxy/"))
}

func orRoot(path string) string {
	if path == "" {
		return "/"
	}
	return path
}

// checkPath is strict about the part of a path that a Kubernetes API server reads. What follows the
// subresource proxy of a Pod, a Service or a node belongs to an application: it passes as it is,
// except for what some reader could resolve to a path of the API server.
func (r *Request) checkPath() error {
	own, behind := splitAtProxy(r.RawPath)
	path, err := url.PathUnescape(own)
	if err != nil {
		return fmt.Errorf("the path cannot be decoded: %w", err)
	}
	if err := checkPath(path, own); err != nil || behind == "" {
		return err
	}
	return checkDots(r.Path)
}

// splitAtProxy cuts an encoded path behind the subresource proxy. The words before it must not be
// encoded.
func splitAtProxy(raw string) (own, behind string) {
	const most = 9 // "", api, v1, namespaces, its name, pods, its name, proxy and the rest
	parts := strings.SplitN(raw, "/", most)
	at := 5 // of /api/v1/nodes/NAME/proxy
	switch {
	case len(parts) > at && parts[3] == "nodes":
	case len(parts) == most && parts[3] == "namespaces" && (parts[5] == "pods" || parts[5] == "services"):
		at = 7
	default:
		return raw, ""
	}
	if parts[0] != "" || parts[1] != "api" || parts[2] != "v1" || parts[at] != "proxy" {
		return raw, ""
	}
	own = strings.Join(parts[:at+1], "/")
	return own, raw[len(own):]
}

// checkDots refuses control characters and dot segments, also between backslashes.
func checkDots(path string) error {
	if strings.ContainsFunc(path, isControl) {
		return errors.New("the path contains a control character")
	}
	for segment := range strings.FieldsFuncSeq(path, func(c rune) bool { return c == '/' || c == '\\' }) {
		if segment == "." || segment == ".." {
			return errors.New(`the path contains "." or ".."`)
		}
	}
	return nil
}

func isControl(c rune) bool { return c < ' ' || c == 0x7f }

// checkPath refuses what proxies and servers are known to read differently: dot segments, empty
// segments, encoded separators and dots, backslashes, control characters.
func checkPath(path, raw string) error {
	if strings.ContainsFunc(path, func(c rune) bool { return isControl(c) || c == '\\' }) {
		return errors.New("the path contains a control character or a backslash")
	}
	lower := strings.ToLower(raw)
	for _, encoded := range []string{"%2f", "%5c", "%2e"} {
		if strings.Contains(lower, encoded) {
			return fmt.Errorf("the path contains %q, which readers understand differently", encoded)
		}
	}
	segments := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	if path == "/" {
		return nil
	}
	for _, segment := range segments {
		if segment == "" || segment == "." || segment == ".." {
			return errors.New(`the path contains an empty segment, "." or ".."`)
		}
	}
	return nil
}

// wantsUpgrade prefers false positives: one of the two headers is enough.
func wantsUpgrade(h http.Header) bool {
	return len(h["Upgrade"]) > 0 || httpguts.HeaderValuesContainsToken(h["Connection"], "upgrade")
}

// longRunningSubresources have no time limit on a member's API server.
var longRunningSubresources = []string{"exec", "attach", "portforward", "proxy", "log"}

// isLongRunning applies the rule of the member's API server. A shorter limit here would cut
// requests that the member allows.
func isLongRunning(info *apirequest.RequestInfo) bool {
	if !info.IsResourceRequest {
		return false
	}
	return info.Verb == "watch" || info.Verb == "proxy" || slices.Contains(longRunningSubresources, info.Subresource)
}

// isWatch is true for a request that its caller can resume where it ended.
func (r *Request) isWatch() bool { return r.Info.IsResourceRequest && r.Info.Verb == "watch" }

// isPage is true for a request for what a Pod, a Service or a node serves.
func (r *Request) isPage() bool { return r.Info.IsResourceRequest && r.Info.Subresource == "proxy" }

// isLog is true for a request whose reply is text for people.
func (r *Request) isLog() bool { return r.Info.IsResourceRequest && r.Info.Subresource == "log" }

type parsedKey struct{}

type parsed struct {
	request *Request
	err     error
}

// WithParsed parses a request for a member before any other handler sees it and stores the result
// in the context, for LongRunning and Handler. It refuses nothing, because an unauthenticated
// caller must not learn the reason.
func WithParsed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := Parse(r)
		if request == nil && err == nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx := context.WithValue(r.Context(), parsedKey{}, parsed{request: request, err: err})
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

func parsedFrom(ctx context.Context) (parsed, bool) {
	p, ok := ctx.Value(parsedKey{}).(parsed)
	return p, ok
}

// LongRunning says whether the context's request is a long-running request for a member. isProxied
// is false if it is not for a member.
func LongRunning(ctx context.Context) (longRunning, isProxied bool) {
	p, ok := parsedFrom(ctx)
	if !ok {
		return false, false
	}
	return p.request != nil && p.request.LongRunning, true
}
