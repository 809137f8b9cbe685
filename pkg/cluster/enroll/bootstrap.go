// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package enroll

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

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
}

// ParseBootstrap reads a values.yaml. Its error names everything that is wrong with
// it, and never the token.
func ParseBootstrap(values []byte) (*Bootstrap, error) {
	if len(values) > maxValuesLength {
		return nil, fmt.Errorf("the values have more than %d bytes", maxValuesLength)
	}
	var b Bootstrap
	if err := yaml.Unmarshal(values, &b); err != nil {
		// The parser's own text may quote what it read, the token included.
		return nil, errors.New("the values are not the YAML that a registration Secret holds under the key \"values\"")
	}
	if err := b.Validate(); err != nil {
		return nil, err
	}
	return &b, nil
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
	}
	return b, b.Validate()
}
