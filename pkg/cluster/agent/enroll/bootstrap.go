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

// bootstrapKubeconfigKey is the key of the bootstrap Secret for a kubeconfig instead of values.
const bootstrapKubeconfigKey = "kubeconfig"

// maxValuesLength limits the size of a values file in bytes.
const maxValuesLength = 1 << 20

// Bootstrap is what an agent needs to register: the hub's values and additions of a user. It
// contains a token: never log it.
type Bootstrap struct {
	registrationv1alpha1.AgentValues `json:",inline"`
	// ClientID identifies this cluster. If unset, the UID of the member's namespace kube-system.
	ClientID string `json:"clientID,omitempty"`
	// Labels are set on the Cluster if the hub creates it for this agent.
	Labels map[string]string `json:"labels,omitempty"`
	// ProxyURL is the forward proxy (http or https) to the hub. If unset, the environment decides.
	ProxyURL string `json:"proxyURL,omitempty"`
}

// ParseBootstrap parses a values.yaml. Its error names all problems and never contains the token.
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
		// The parser's error may quote its input, including the token.
		return nil, errors.New("the values are not the YAML that a registration Secret holds under the key \"values\"")
	}
	b.complete()
	if err := b.Validate(); err != nil {
		return nil, err
	}
	return &b, nil
}

// ParseBootstrapKubeconfig parses a kubeconfig whose user has a registration token and whose
// context has the registration namespace.
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

// complete fills in namespace and name from the token's claims, so that the hub's URL and the token
// are sufficient.
func (b *Bootstrap) complete() {
	namespace, name := claimsOf(b.Token)
	b.ClusterNamespace = cmp.Or(b.ClusterNamespace, namespace)
	b.TokenName = cmp.Or(b.TokenName, name)
}

// Validate returns all problems that prevent a registration with the bootstrap.
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

// Source returns the bootstrap, or nil if there is none.
type Source func(ctx context.Context) (*Bootstrap, error)

// Given returns the Source of a fixed bootstrap, for example from a file.
func Given(b *Bootstrap) Source {
	return func(context.Context) (*Bootstrap, error) { return b, nil }
}

// bootstrapOf parses the Secret that a chart or the hub created for the agent.
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
