// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

const (
	// frontendAudience is whom frontends' tokens are for: an agent's, for
	// tunnelv1alpha1.TokenAudience, is worth nothing there, nor the reverse, nor either
	// at the hub's API server.
	frontendAudience = "frontends.tunnel.fleetgate.io"
	// believedFor is how long the hub's decision on a dial is.
	believedFor = 10 * time.Second
)

// tunnelSet holds all ways into members. Native ones come first.
type tunnelSet struct {
	native       *tunnel.Registry
	konnectivity *konnectivity.AgentServer
}

// DialMember opens a connection into a member.
func (t tunnelSet) DialMember(ctx context.Context, member, target string) (net.Conn, error) {
	if t.needsKonnectivity(member) {
		return t.konnectivity.DialMember(ctx, member, target)
	}
	return t.native.DialMember(ctx, member, target)
}

// needsKonnectivity says that the one tunnel of the member is of Konnectivity.
func (t tunnelSet) needsKonnectivity(member string) bool {
	return t.konnectivity != nil && !t.native.Reachable(member) && t.konnectivity.Connected(member)
}

// Connected says whether a dial to the member may succeed.
func (t tunnelSet) Connected(member string) bool {
	return t.native.Reachable(member) || t.konnectivity != nil && t.konnectivity.Connected(member)
}

// Disconnect ends a member's tunnels.
func (t tunnelSet) Disconnect(member string) {
	t.native.Disconnect(member)
	if t.konnectivity != nil {
		t.konnectivity.Disconnect(member)
	}
}

// addKonnectivity takes Konnectivity's agents, at the port of the others, and its
// frontends, where flags say so.
func (g *gateway) addKonnectivity(parts *tunnelParts) (tunnelSet, error) {
	ways := tunnelSet{native: parts.registry}
	if !g.KonnectivityAgents && g.KonnectivityFrontends == "" {
		return ways, nil
	}
	exported, err := konnectivity.NewMetrics(metrics.Registry)
	if err != nil {
		return ways, err
	}
	allow, err := konnectivity.ParseAllow(g.KonnectivityAllow)
	if err != nil {
		return ways, err
	}
	if g.KonnectivityAgents {
		if ways.konnectivity, err = g.newKonnectivityAgents(parts, allow, exported); err != nil {
			return ways, fmt.Errorf("setting up Konnectivity's agents: %w", err)
		}
		parts.disconnect = ways.Disconnect
		parts.others = map[string]func(context.Context, *tls.Conn){konnectivity.Protocol: ways.konnectivity.Take}
		if err := g.manager.Add(everywhere(func(ctx context.Context) error {
			return ways.konnectivity.Run(ctx, tunnelDrain)
		})); err != nil {
			return ways, err
		}
	}
	if g.KonnectivityFrontends == "" {
		return ways, nil
	}
	frontends, err := g.newKonnectivityFrontends(ways, allow, exported)
	if err != nil {
		return ways, fmt.Errorf("setting up Konnectivity's frontends: %w", err)
	}
	return ways, g.manager.Add(g.listening(g.KonnectivityFrontends, frontends.Serve))
}

// konnectivityNames are those by which Konnectivity's own agents and frontends reach
// the gateway: they verify the name that they dial, and nobody tells them another one.
func (g *gateway) konnectivityNames() []string {
	var names []string
	host, _, err := net.SplitHostPort(g.AgentsAddress)
	if g.KonnectivityAgents && err == nil && net.ParseIP(host) == nil {
		names = append(names, host)
	}
	if domain := strings.Trim(g.KonnectivityDomain, "."); g.KonnectivityFrontends != "" && domain != "" {
		names = append(names, "*."+domain)
	}
	return names
}

func (g *gateway) newKonnectivityAgents(parts *tunnelParts, allow konnectivity.Allow, exported *konnectivity.Metrics) (*konnectivity.AgentServer, error) {
	return konnectivity.NewAgentServer(konnectivity.AgentServerOptions{
		// Certificates are the port's own matter.
		Credentials: konnectivity.Credentials{Token: (&tokenReviews{client: g.clientset, audience: tunnelv1alpha1.TokenAudience}).identify},
		MembersOf:   parts.members.MembersOf,
		ID:          identity(),
		Replicas: func() int {
			if g.KonnectivityReplicas > 0 {
				return g.KonnectivityReplicas
			}
			return parts.port.info().Replicas
		},
		Lanes:     g.KonnectivityLanes,
		APIServer: g.KonnectivityAPIServer,
		Allow:     allow,
		Metrics:   exported,
	})
}

func (g *gateway) newKonnectivityFrontends(ways tunnelSet, allow konnectivity.Allow, exported *konnectivity.Metrics) (*konnectivity.FrontendServer, error) {
	reviews, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: g.clientset.AuthorizationV1(),
		AllowCacheTTL:             believedFor,
		DenyCacheTTL:              believedFor,
		WebhookRetryBackoff:       options.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, fmt.Errorf("delegating authorization: %w", err)
	}
	credentials := konnectivity.Credentials{Token: (&tokenReviews{client: g.clientset, audience: frontendAudience}).identify}
	if g.KonnectivityFrontendsCA != "" {
		credentials.ClientCAs = (&caBundle{path: g.KonnectivityFrontendsCA}).pool
	}
	return konnectivity.NewFrontendServer(konnectivity.FrontendServerOptions{
		Credentials: credentials,
		Authorize: func(ctx context.Context, id konnectivity.Identity, member string) (bool, error) {
			decision, _, err := reviews.Authorize(ctx, dialOf(id, member))
			return decision == authorizer.DecisionAllow, err
		},
		Dialer:      ways,
		Certificate: g.certificates.GetCertificate,
		Domain:      g.KonnectivityDomain,
		Allow:       allow,
		Metrics:     exported,
	})
}

// dialOf is the right that a frontend needs.
func dialOf(id konnectivity.Identity, member string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User:            &user.DefaultInfo{Name: id.Name, Groups: append(slices.Clone(id.Groups), user.AllAuthenticated)},
		Verb:            "create",
		APIGroup:        tunnelv1alpha1.GroupVersion.Group,
		APIVersion:      tunnelv1alpha1.GroupVersion.Version,
		Resource:        tunnelv1alpha1.Resource,
		Subresource:     "dial",
		Name:            member,
		ResourceRequest: true,
	}
}

// tokenReviews asks the hub whose tokens are.
type tokenReviews struct {
	client   kubernetes.Interface
	audience string
}

func (r *tokenReviews) identify(ctx context.Context, token string) (konnectivity.Identity, bool, error) {
	review, err := r.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{r.audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		return konnectivity.Identity{}, false, fmt.Errorf("asking the hub whose token it is: %w", err)
	}
	status := review.Status
	// A hub that knows no audiences leaves them out: its tokens are for everybody.
	if !status.Authenticated || !slices.Contains(status.Audiences, r.audience) {
		return konnectivity.Identity{}, false, nil
	}
	return konnectivity.Identity{Name: status.User.Username, Groups: status.User.Groups, Expires: expiryOf(token)}, true, nil
}

// expiryOf reads when a token expires, which a review does not say. The hub has
// verified the token; one of another form has no expiry that anybody could read.
func expiryOf(token string) time.Time {
	parts := strings.Split(token, ".")
	const jwtParts = 3
	if len(parts) != jwtParts {
		return time.Time{}
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var known struct {
		Expires int64 `json:"exp"`
	}
	if json.Unmarshal(claims, &known) != nil || known.Expires <= 0 {
		return time.Time{}
	}
	return time.Unix(known.Expires, 0)
}

// caBundle is a PEM file that is read anew when it changes.
type caBundle struct {
	path string

	// mu guards the fields below it.
	mu      sync.Mutex
	changed time.Time
	parsed  *x509.CertPool
}

func (b *caBundle) pool() (*x509.CertPool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	info, err := os.Stat(b.path)
	if err != nil {
		return nil, err
	}
	if b.parsed != nil && info.ModTime().Equal(b.changed) {
		return b.parsed, nil
	}
	if info.Size() > maxCABytes {
		return nil, fmt.Errorf("%s has more than %d bytes", b.path, maxCABytes)
	}
	text, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	parsed := x509.NewCertPool()
	if !parsed.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", b.path)
	}
	b.parsed, b.changed = parsed, info.ModTime()
	return parsed, nil
}

// listening runs a server at an address in every replica, once there is a
// certificate.
func (g *gateway) listening(address string, serve func(context.Context, net.Listener, time.Duration) error) everywhere {
	return func(ctx context.Context) error {
		if err := g.certificates.WaitForFirst(ctx); err != nil {
			return ignoreEnd(ctx, err)
		}
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", address)
		if err != nil {
			return explain(fmt.Errorf("listening at %s: %w", address, err))
		}
		return serve(ctx, listener, tunnelDrain)
	}
}
