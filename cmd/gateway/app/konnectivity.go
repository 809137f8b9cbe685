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
	"k8s.io/apiserver/pkg/authentication/authenticator"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	serveroptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"fleetgate.io/fleetgate/cmd/gateway/app/options"
	tunnelv1alpha1 "fleetgate.io/fleetgate/pkg/apis/tunnel/v1alpha1"
	"fleetgate.io/fleetgate/pkg/tunnel"
	"fleetgate.io/fleetgate/pkg/tunnel/konnectivity"
)

const (
	// konnectivityReplicas is to how many of the gateway's replicas agents connect, if
	// there are so many: the others pass dials on.
	konnectivityReplicas = 2
	// believedFor is how long the hub's answers about a frontend are: whose token it is,
	// and whether a dial is allowed.
	believedFor = 10 * time.Second

	maxFrontendsCABytes = 1 << 20
)

// addKonnectivity takes Konnectivity's agents, at the port of the others, and its
// frontends, where flags say so. Their agents' tunnels join the registry of all.
func (g *gateway) addKonnectivity(parts *tunnelParts) error {
	if !g.Tunnels.Konnectivity.Agents && g.Tunnels.Konnectivity.Frontends == "" {
		return nil
	}
	exported, err := konnectivity.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	allow, err := konnectivity.ParseAllow(g.Tunnels.Konnectivity.Allow)
	if err != nil {
		return err
	}
	if g.Tunnels.Konnectivity.Agents {
		agents, err := g.newKonnectivityAgents(parts, allow, exported)
		if err != nil {
			return fmt.Errorf("setting up Konnectivity's agents: %w", err)
		}
		parts.disconnect = func(member string) {
			parts.registry.Disconnect(member)
			agents.Disconnect(member)
		}
		parts.others = map[string]func(context.Context, *tls.Conn){konnectivity.Protocol: agents.Take}
		if err := g.manager.Add(everywhere(func(ctx context.Context) error {
			// The registry has them drain with the others.
			ctx, cancel := whileCarrying(ctx, parts.drained)
			defer cancel()
			return agents.Run(ctx, 0)
		})); err != nil {
			return err
		}
	}
	if g.Tunnels.Konnectivity.Frontends == "" {
		return nil
	}
	frontends, err := g.newKonnectivityFrontends(parts.registry, allow, exported)
	if err != nil {
		return fmt.Errorf("setting up Konnectivity's frontends: %w", err)
	}
	return g.manager.Add(g.listening(g.Tunnels.Konnectivity.Frontends, frontends.Serve))
}

// konnectivityNames are those by which Konnectivity's own agents and frontends reach
// the gateway: they verify the name that they dial, and nobody tells them another one.
func (g *gateway) konnectivityNames() []string {
	var names []string
	host, _, err := net.SplitHostPort(g.Tunnels.AgentsAddress)
	if g.Tunnels.Konnectivity.Agents && err == nil && net.ParseIP(host) == nil {
		names = append(names, host)
	}
	if domain := strings.Trim(g.Tunnels.Konnectivity.Domain, "."); g.Tunnels.Konnectivity.Frontends != "" && domain != "" {
		names = append(names, "*."+domain)
	}
	return names
}

func (g *gateway) newKonnectivityAgents(parts *tunnelParts, allow konnectivity.Allow, exported *konnectivity.Metrics) (*konnectivity.AgentServer, error) {
	return konnectivity.NewAgentServer(konnectivity.AgentServerOptions{
		// Certificates are the port's own matter.
		Credentials: konnectivity.Credentials{Token: (&tokenReviews{client: g.clientset, audience: tunnelv1alpha1.TokenAudience}).identify},
		MembersOf:   parts.members.MembersOf,
		Join:        parts.registry.ServeSession,
		ID:          identity(),
		Replicas: func() int {
			if g.Tunnels.Konnectivity.Replicas > 0 {
				return g.Tunnels.Konnectivity.Replicas
			}
			return min(parts.port.info().Replicas, konnectivityReplicas)
		},
		Lanes:     g.Tunnels.Konnectivity.Lanes,
		APIServer: g.Tunnels.Konnectivity.APIServer,
		Allow:     allow,
		Metrics:   exported,
	})
}

func (g *gateway) newKonnectivityFrontends(registry *tunnel.Registry, allow konnectivity.Allow, exported *konnectivity.Metrics) (*konnectivity.FrontendServer, error) {
	reviews, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: g.clientset.AuthorizationV1(),
		AllowCacheTTL:             believedFor,
		DenyCacheTTL:              believedFor,
		WebhookRetryBackoff:       serveroptions.DefaultAuthWebhookRetryBackoff(),
	}.New()
	if err != nil {
		return nil, fmt.Errorf("delegating authorization: %w", err)
	}
	credentials := konnectivity.Credentials{Token: remembering((&tokenReviews{client: g.clientset, audience: options.FrontendAudience}).identify)}
	if g.Tunnels.Konnectivity.FrontendsCA != "" {
		credentials.ClientCAs = (&caBundle{path: g.Tunnels.Konnectivity.FrontendsCA}).pool
	}
	return konnectivity.NewFrontendServer(konnectivity.FrontendServerOptions{
		Credentials: credentials,
		Authorize: func(ctx context.Context, id konnectivity.Identity, member string) (bool, error) {
			decision, _, err := reviews.Authorize(ctx, dialOf(id, member))
			return decision == authorizer.DecisionAllow, err
		},
		Dialer:      registry,
		Certificate: g.certificates.GetCertificate,
		Domain:      g.Tunnels.Konnectivity.Domain,
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

// remembering asks once about a token that is shown again and again: frontends show
// theirs with every dial.
func remembering(identify func(context.Context, string) (konnectivity.Identity, bool, error)) func(context.Context, string) (konnectivity.Identity, bool, error) {
	answers := tokencache.New(authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		id, ok, err := identify(ctx, token)
		return &authenticator.Response{User: &user.DefaultInfo{Name: id.Name, Groups: id.Groups}}, ok, err
	}), false, believedFor, believedFor)
	return func(ctx context.Context, token string) (konnectivity.Identity, bool, error) {
		answer, ok, err := answers.AuthenticateToken(ctx, token)
		if err != nil || !ok {
			return konnectivity.Identity{}, false, err
		}
		return konnectivity.Identity{Name: answer.User.GetName(), Groups: answer.User.GetGroups(), Expires: expiryOf(token)}, true, nil
	}
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
	if info.Size() > maxFrontendsCABytes {
		return nil, fmt.Errorf("%s has more than %d bytes", b.path, maxFrontendsCABytes)
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
		return serve(ctx, listener, streamDrain)
	}
}
