// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/kubeconfig"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// bootstrapKubeconfigKey is the key of the bootstrap Secret under which a kubeconfig may
// stand instead of values.
const bootstrapKubeconfigKey = "kubeconfig"

// maxValuesLength bounds a values file, in bytes.
const maxValuesLength = 1 << 20

// Bootstrap is what an agent needs to register: the hub's values, and what a user
// adds to them. It holds a token: never log it.
type Bootstrap struct {
	registrationv1alpha1.AgentValues `json:",inline"`
	// ClientID tells this cluster from every other. Empty means the UID of the
	// member's namespace kube-system.
	ClientID string `json:"clientID,omitempty"`
	// Labels are the labels that the Cluster gets if the hub makes it for this agent.
	Labels map[string]string `json:"labels,omitempty"`
	// ProxyURL is the forward proxy, http or https, on the way to the hub. Empty means
	// what the environment says.
	ProxyURL string `json:"proxyURL,omitempty"`
}

// ParseBootstrap reads a values.yaml. Its error names everything that is wrong with
// it, and never the token.
func ParseBootstrap(values []byte) (*Bootstrap, error) {
	if len(values) > maxValuesLength {
		return nil, fmt.Errorf("the values have more than %d bytes", maxValuesLength)
	}
	plain, err := untrusted.ToJSON(values, untrusted.Object)
	if err != nil {
		return nil, fmt.Errorf("the values are not the YAML that a registration Secret holds under the key \"values\": %w", err)
	}
	var b Bootstrap
	if err := untrusted.Unmarshal(plain, untrusted.Object, &b); err != nil {
		// The parser's own text may quote what it read, the token included.
		return nil, errors.New("the values are not the YAML that a registration Secret holds under the key \"values\"")
	}
	b.complete()
	if err := b.Validate(); err != nil {
		return nil, err
	}
	return &b, nil
}

// ParseBootstrapKubeconfig reads a kubeconfig whose user has a registration token and
// whose context names the registration namespace.
func ParseBootstrapKubeconfig(raw []byte) (*Bootstrap, error) {
	access, err := kubeconfig.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig for registering cannot be used: %w", err)
	}
	b := &Bootstrap{AgentValues: registrationv1alpha1.AgentValues{
		ClusterNamespace: access.Namespace,
		APIServerURL:     access.Server,
		APIServerCA:      string(access.CA),
		Token:            access.Token,
	}}
	if access.ProxyURL != nil {
		b.ProxyURL = access.ProxyURL.String()
	}
	b.complete()
	return b, b.Validate()
}

// complete fills in what the token says of itself: a token alone is then enough, beside
// the hub's URL.
func (b *Bootstrap) complete() {
	namespace, name := claimsOf(b.Token)
	b.ClusterNamespace = cmp.Or(b.ClusterNamespace, namespace)
	b.TokenName = cmp.Or(b.TokenName, name)
}

// Validate returns all that keeps an agent from registering with the bootstrap.
func (b *Bootstrap) Validate() error {
	var errs []error
	if server, err := url.Parse(b.APIServerURL); err != nil || server.Scheme != "https" || server.Host == "" {
		errs = append(errs, fmt.Errorf("apiServerURL must be an https URL, it is %q", b.APIServerURL))
	}
	if b.APIServerCA != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(b.APIServerCA)) {
		errs = append(errs, errors.New("apiServerCA must be certificates in PEM form, or empty"))
	}
	if b.Token == "" {
		errs = append(errs, errors.New("token must not be empty"))
	}
	if len(validation.IsDNS1123Label(b.ClusterNamespace)) > 0 {
		errs = append(errs, fmt.Errorf("clusterNamespace must be the namespace of the registration token, it is %q", b.ClusterNamespace))
	}
	if _, err := kubeconfig.ParseProxy("proxyURL", b.ProxyURL); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Source hands out the bootstrap, or nil if there is none (any more).
type Source func(ctx context.Context) (*Bootstrap, error)

// Given is the Source of a bootstrap that was handed in, for example from a file.
func Given(b *Bootstrap) Source {
	return func(context.Context) (*Bootstrap, error) { return b, nil }
}

// bootstrapOf reads the Secret that a chart, or the hub, left for the agent.
func bootstrapOf(secret *corev1.Secret) (*Bootstrap, error) {
	if values, ok := secret.Data[registrationv1alpha1.RegistrationValuesKey]; ok {
		return ParseBootstrap(values)
	}
	if raw, ok := secret.Data[bootstrapKubeconfigKey]; ok {
		return ParseBootstrapKubeconfig(raw)
	}
	text := func(key string) string { return string(secret.Data[key]) }
	b := &Bootstrap{
		AgentValues: registrationv1alpha1.AgentValues{
			ClusterNamespace: text("clusterNamespace"),
			APIServerURL:     text("apiServerURL"),
			APIServerCA:      text("apiServerCA"),
			Token:            text("token"),
			TokenName:        text("tokenName"),
		},
		ClientID: text("clientID"),
		ProxyURL: text("proxyURL"),
	}
	b.complete()
	return b, b.Validate()
}
