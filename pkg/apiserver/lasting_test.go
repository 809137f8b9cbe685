// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"fleetgate.io/fleetgate/pkg/apiserver"
	"fleetgate.io/fleetgate/pkg/apiserver/clustergateway"
)

// lastingGateway has one member that sends a line and then nothing until its caller has
// disconnected. Permissions are reviewed continuously. Records are sent to the channel.
func lastingGateway(t *testing.T, options ...option) (*gateway, *member, <-chan clustergateway.Record) {
	t.Helper()
	m := newMember(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == selfReviews {
			answerReview(w, r, authorizationv1.SubjectAccessReviewStatus{Allowed: true})
			return
		}
		if r.Header.Get("Upgrade") != "" {
			acceptUpgrade(t, w)
			return
		}
		_, _ = io.WriteString(w, "begun\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	records := make(chan clustergateway.Record, 100)
	options = append(options, func(c *apiserver.Config) {
		c.ReviewPeriod = time.Millisecond
		c.Recorder = func(_ context.Context, r clustergateway.Record) { records <- r }
	})
	return newGateway(t, map[string]*member{"m1": m}, options...), m, records
}

const selfReviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// answerReview answers as a member's API server does, and returns the reviewed attributes. A caller
// that has disconnected gets no answer.
func answerReview(w http.ResponseWriter, r *http.Request, status authorizationv1.SubjectAccessReviewStatus) authorizationv1.SelfSubjectAccessReviewSpec {
	var review authorizationv1.SelfSubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		return review.Spec
	}
	review.Status = status
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review)
	return review.Spec
}

// reviewed wraps a member's handler of reviews.
func reviewed(m *member, answer func(w http.ResponseWriter, r *http.Request, otherwise http.Handler)) {
	m.over(func(before http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == selfReviews {
				answer(w, r, before)
				return
			}
			before.ServeHTTP(w, r)
		}
	})
}

// memberAnswers fixes a member's answer to reviews about jane.
func memberAnswers(m *member, jane authorizationv1.SubjectAccessReviewStatus) {
	reviewed(m, func(w http.ResponseWriter, r *http.Request, otherwise http.Handler) {
		if r.Header.Get("Impersonate-User") == "jane" {
			answerReview(w, r, jane)
			return
		}
		otherwise.ServeHTTP(w, r)
	})
}

// acceptUpgrade accepts an upgrade and holds it until its caller has disconnected.
func acceptUpgrade(t *testing.T, w http.ResponseWriter) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nbegun\n")
	_, _ = io.Copy(io.Discard, buffered)
}

const (
	aWatch = prefix + "m1/proxy/api/v1/namespaces/a/pods?watch=true"
	aLog   = prefix + "m1/proxy/api/v1/namespaces/a/pods/p/log?follow=true"
	anExec = prefix + "m1/proxy/api/v1/namespaces/a/pods/p/exec?command=sh"
)

// begin starts a long-running request and returns the rest of its response once the first line has
// arrived.
func (g *gateway) begin(path, user string) io.Reader {
	g.t.Helper()
	if path == anExec {
		conn, reader, res := g.raw("POST " + path + " HTTP/1.1\r\nHost: gateway.test\r\nX-Remote-User: " + user +
			"\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nContent-Length: 0\r\n\r\n")
		wantCode(g.t, res, http.StatusSwitchingProtocols)
		g.t.Cleanup(func() { _ = conn.Close() })
		return g.begun(reader)
	}
	res := g.do(http.MethodGet, path, user, nil, patiently(g.t))
	wantCode(g.t, res, http.StatusOK)
	return g.begun(res.Body)
}

// patiently ends a request that should have ended by itself long ago.
func patiently(t testing.TB) func(*http.Request) {
	return func(r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
		t.Cleanup(cancel)
		*r = *r.WithContext(ctx)
	}
}

func (g *gateway) begun(r io.Reader) io.Reader {
	g.t.Helper()
	line := make([]byte, len("begun\n"))
	if _, err := io.ReadFull(r, line); err != nil {
		g.t.Fatal(err)
	}
	return r
}

func TestLongRunning_EndsWhenPermissionIsLost(t *testing.T) {
	inner := func(c *apiserver.Config) { c.AuthorizeMemberRequests = true }
	for name, test := range map[string]struct {
		path    string
		options []option
		lose    func(*gateway, *member)
		want    string
	}{
		"a watch with the hub's right": {
			path: aWatch,
			lose: func(g *gateway, _ *member) {
				g.allowOnly(func(a authorizer.Attributes) bool { return a.GetUser().GetName() != "jane" || a.GetVerb() != "get" })
			},
			want: `on the hub, user "jane" may no longer get clustergateways/proxy of member "m1"`,
		},
		"a log with the hub's right": {
			path: aLog,
			lose: func(g *gateway, _ *member) {
				g.allowOnly(func(a authorizer.Attributes) bool { return a.GetUser().GetName() != "jane" })
			},
			want: `on the hub, user "jane" may no longer get clustergateways/proxy of member "m1"`,
		},
		"an exec with the hub's right": {
			path: anExec,
			lose: func(g *gateway, _ *member) {
				g.allowOnly(func(a authorizer.Attributes) bool { return a.GetUser().GetName() != "jane" })
			},
			want: `on the hub, user "jane" may no longer create clustergateways/proxy of member "m1"`,
		},
		"a watch with the inner right": {
			path: aWatch, options: []option{inner},
			lose: func(g *gateway, _ *member) {
				g.allowOnly(func(a authorizer.Attributes) bool {
					return a.GetUser().GetName() != "jane" || a.GetResource() != "pods"
				})
			},
			want: `on the hub, user "jane" may no longer watch pods of member "m1"`,
		},
		"an exec with the inner right": {
			path: anExec, options: []option{inner},
			lose: func(g *gateway, _ *member) {
				g.allowOnly(func(a authorizer.Attributes) bool {
					return a.GetUser().GetName() != "jane" || a.GetSubresource() != "exec"
				})
			},
			want: `on the hub, user "jane" may no longer create pods/exec of member "m1"`,
		},
		"a watch with the member's grant": {
			path: aWatch,
			lose: func(_ *gateway, m *member) {
				m.agentAnswers(func(w http.ResponseWriter, r *http.Request) {
					if body, _ := io.ReadAll(r.Body); !strings.Contains(string(body), "jane") {
						w.WriteHeader(http.StatusNoContent)
						return
					}
					w.WriteHeader(http.StatusForbidden)
					_ = json.NewEncoder(w).Encode(map[string]string{"message": "not any more"})
				})
			},
			want: `the agent of member "m1" no longer lets the gateway act as user "jane": not any more`,
		},
		"a watch with the member's own right": {
			path: aWatch,
			lose: func(_ *gateway, m *member) {
				memberAnswers(m, authorizationv1.SubjectAccessReviewStatus{Reason: `RBAC: role "reader" not found`})
			},
			want: `on member "m1", user "jane" may no longer watch pods in namespace a`,
		},
		"an exec with the member's own right": {
			path: anExec,
			lose: func(_ *gateway, m *member) {
				memberAnswers(m, authorizationv1.SubjectAccessReviewStatus{Denied: true, EvaluationError: "another authorizer is unreachable"})
			},
			want: `on member "m1", user "jane" may no longer create pods/exec in namespace a`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, m, records := lastingGateway(t, test.options...)
			left := g.begin(test.path, "jane")
			_ = g.begin(aWatch, "mary")
			test.lose(g, m)
			_, _ = io.ReadAll(left)
			record := <-records
			if record.User != "jane" || !strings.HasSuffix(record.Ended, test.want) {
				t.Errorf("got user %q, ended %q; want %q", record.User, record.Ended, test.want)
			}
			select {
			case record := <-records:
				t.Errorf("the request of %q ended too: %q", record.User, record.Ended)
			default:
			}
		})
	}
}

func TestLongRunning_ContinuesIfHubIsUnreachable(t *testing.T) {
	asked := make(chan struct{})
	var down atomic.Bool
	g, _, records := lastingGateway(t, func(c *apiserver.Config) {
		allowed := c.Authorizer
		c.Authorizer = authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if down.Load() {
				select {
				case asked <- struct{}{}:
				case <-ctx.Done():
				}
				return authorizer.DecisionNoOpinion, "", io.ErrUnexpectedEOF
			}
			return allowed.Authorize(ctx, a)
		})
	})
	_ = g.begin(aWatch, "jane")
	down.Store(true)
	for range 5 {
		<-asked
	}
	select {
	case record := <-records:
		t.Errorf("the watch ended: %q", record.Ended)
	default:
	}
}

func TestLongRunning_ContinuesIfMemberCannotDecide(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"its own authorizer is unreachable": func(w http.ResponseWriter, r *http.Request) {
			answerReview(w, r, authorizationv1.SubjectAccessReviewStatus{EvaluationError: "the webhook did not answer"})
		},
		"nobody may ask it": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
		"its answer is cut": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"status":{"allo`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, m, records := lastingGateway(t)
			_ = g.begin(aWatch, "jane")
			asked := make(chan struct{})
			reviewed(m, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
				answer(w, r)
				select {
				case asked <- struct{}{}:
				case <-r.Context().Done():
				}
			})
			for range 5 {
				<-asked
			}
			select {
			case record := <-records:
				t.Errorf("the watch ended: %q", record.Ended)
			default:
			}
		})
	}
}

func TestLongRunning_WatchesOfClusterWideReaderShareOneReview(t *testing.T) {
	var asked sync.Map
	g, m, _ := lastingGateway(t, func(c *apiserver.Config) { c.ReviewPeriod = 100 * time.Millisecond })
	of := func(user string) map[string]bool {
		all := map[string]bool{}
		asked.Range(func(key, _ any) bool {
			if who, what, _ := strings.Cut(key.(string), " "); who == user {
				all[what] = true
			}
			return true
		})
		return all
	}
	reviewed(m, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		user := r.Header.Get("Impersonate-User")
		everything := strings.Contains(string(body), `"resource":"*"`)
		spec := answerReview(w, r, authorizationv1.SubjectAccessReviewStatus{Allowed: user == "argo" || !everything})
		if spec.ResourceAttributes == nil {
			return
		}
		asked.Store(user+" "+spec.ResourceAttributes.Verb+" "+spec.ResourceAttributes.Resource, true)
	})
	for _, user := range []string{"argo", "jane"} {
		for _, kind := range []string{"pods", "configmaps", "secrets"} {
			_ = g.begin(prefix+"m1/proxy/api/v1/"+kind+"?watch=true", user)
		}
	}
	want := map[string]bool{"watch *": true, "watch pods": true, "watch configmaps": true, "watch secrets": true}
	for deadline := time.Now().Add(20 * time.Second); !maps.Equal(of("jane"), want); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the member reviewed %v for jane, want %v", of("jane"), want)
		}
	}
	if got := of("argo"); !maps.Equal(got, map[string]bool{"watch *": true}) {
		t.Errorf("the member reviewed %v for argo", got)
	}
}

func TestLimits_CountLongRunningRequests(t *testing.T) {
	g, _, _ := lastingGateway(t, func(c *apiserver.Config) { c.MaxLongPerUser, c.MaxLongPerMember = 2, 3 })
	_ = g.begin(aWatch, "greedy")
	_ = g.begin(anExec, "greedy")
	for _, path := range []string{aWatch, aLog} {
		res := g.do(http.MethodGet, path, "greedy", nil, patiently(t))
		wantCode(t, res, http.StatusTooManyRequests)
		if got := statusOf(t, res).Message; !strings.Contains(got, "2 long-running requests of this user") || !strings.Contains(got, "proxy.maxLongRequestsPerUser") {
			t.Errorf("got %q", got)
		}
	}
	_ = g.begin(aLog, "jane")
	res := g.do(http.MethodGet, aWatch, "mary", nil, patiently(t))
	wantCode(t, res, http.StatusTooManyRequests)
	if got := statusOf(t, res).Message; !strings.Contains(got, `3 long-running requests for member "m1"`) {
		t.Errorf("got %q", got)
	}
}

// The message of Kubernetes' API server for a forbidden impersonation.
const cannotImpersonate = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"users \"jane\" is forbidden: User \"system:serviceaccount:a:cluster-gateway\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope","reason":"Forbidden","code":403}`

// forgetful serves echo only to callers whom the agent has granted since the last call of forget.
type forgetful struct {
	*member
	granted atomic.Bool
	served  atomic.Int64
}

func newForgetful(t *testing.T) (*gateway, *forgetful) {
	g, m := oneMember(t)
	f := &forgetful{member: m}
	m.agentAnswers(func(w http.ResponseWriter, _ *http.Request) {
		f.granted.Store(true)
		w.WriteHeader(http.StatusNoContent)
	})
	m.serve(func(w http.ResponseWriter, r *http.Request) {
		if !f.granted.Load() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, cannotImpersonate)
			return
		}
		f.served.Add(1)
		echo(w, r)
	})
	return g, f
}

func TestGrants_LostGrantIsRequestedAgain(t *testing.T) {
	g, f := newForgetful(t)
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil), http.StatusOK)
	f.granted.Store(false)
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil), http.StatusOK)
	if asked, served := f.asked.Load(), f.served.Load(); asked != 2 || served != 2 {
		t.Errorf("the agent got %d requests and the member served %d, want 2 of each", asked, served)
	}
	f.granted.Store(false)
	const pods = prefix + "m1/proxy/api/v1/namespaces/a/pods"
	if got := seenBy(t, g.do(http.MethodPost, pods, "jane", strings.NewReader("{}"))).Body; got != "{}" {
		t.Errorf("the member got the body %q", got)
	}
	for name, request := range map[string]struct{ path, body string }{
		"a body that is too large to keep":     {pods, aLargeBody},
		"what may be an application's refusal": {pods + "/p/proxy/orders", "{}"},
	} {
		f.granted.Store(false)
		res := g.do(http.MethodPost, request.path, "jane", strings.NewReader(request.body))
		wantCode(t, res, http.StatusServiceUnavailable)
		if got := statusOf(t, res); res.Header.Get("Retry-After") != "1" || !strings.Contains(got.Message, "has just granted the gateway to act as user \"jane\": retry") {
			t.Errorf("%s: got %q, with Retry-After %q", name, got.Message, res.Header.Get("Retry-After"))
		}
	}
	wantCode(t, g.do(http.MethodPost, pods, "jane", strings.NewReader(aLargeBody)), http.StatusOK)
	if served := f.served.Load(); served != 4 {
		t.Errorf("the member served %d requests, want 4", served)
	}
}

func TestGrants_IgnoredGrantIsRequestedOnlyOnceAgain(t *testing.T) {
	g, f := newForgetful(t)
	f.agentAnswers(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	res := g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)
	wantCode(t, res, http.StatusForbidden)
	if got := text(t, res); got != cannotImpersonate {
		t.Errorf("got %s", got)
	}
	if asked := f.asked.Load(); asked != 2 {
		t.Errorf("the agent got %d requests, want 2", asked)
	}
}

func TestGrants_RefusalOfLostGrantIsReported(t *testing.T) {
	g, f := newForgetful(t)
	wantCode(t, g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil), http.StatusOK)
	f.granted.Store(false)
	f.agentAnswers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(map[string]string{"message": "not any more"})
	})
	res := g.do(http.MethodGet, prefix+"m1/proxy/version", "jane", nil)
	wantCode(t, res, http.StatusForbidden)
	if got := statusOf(t, res).Message; !strings.Contains(got, `as user "jane": not any more`) {
		t.Errorf("got %q", got)
	}
}
