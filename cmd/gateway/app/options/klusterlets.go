// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
)

// Klusterlets configures the registration of clusters with agents of Open Cluster
// Management (OCMRegistration).
type Klusterlets struct {
	// AutoApprovedUsers are users whose clusters are accepted without manual approval.
	AutoApprovedUsers []string
	// SignerCert and SignerKey are the files of the CA that signs for klusterlets. If
	// unset, the hub's controller manager signs.
	SignerCert, SignerKey string
	// Labels are set on all objects that the gateway creates for clusters.
	Labels map[string]string
}

// AddFlags binds the options to a command line.
func (o *Klusterlets) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.AutoApprovedUsers, "auto-approved-csr-users", o.AutoApprovedUsers, "With registration in --ocm: users whose clusters are accepted, and get their first certificate, without manual approval. The bearer of such a user's credential can admit any cluster that has no agent yet.")
	flags.StringVar(&o.SignerCert, "csr-signer-cert", o.SignerCert, "With registration in --ocm, on a hub where no signer issues client certificates: PEM file with the certificate of a CA that is in the API server's --client-ca-file. The gateway signs certificates of klusterlets with it, and no others. If unset, the hub's controller manager signs.")
	flags.StringToStringVar(&o.Labels, "ocm-labels", o.Labels, "With registration in --ocm: labels, as KEY=VALUE, for the namespaces, roles and bindings that the gateway creates for clusters.")
	flags.StringVar(&o.SignerKey, "csr-signer-key", o.SignerKey, "PEM file with the private key of --csr-signer-cert.")
}

// Validate returns every error at once.
func (o *Klusterlets) Validate() []error {
	var all []error
	if (o.SignerCert == "") != (o.SignerKey == "") {
		all = append(all, errors.New("--csr-signer-cert and --csr-signer-key need each other: set both or neither"))
	}
	if slices.Contains(o.AutoApprovedUsers, "") {
		all = append(all, errors.New("--auto-approved-csr-users contains an empty name"))
	}
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		value := o.Labels[key]
		wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if key == clusterv1.ClusterNameLabel {
			wrong = append(wrong, "the hub sets it")
		}
		if len(wrong) > 0 {
			all = append(all, fmt.Errorf("--ocm-labels %s=%s cannot be a label: %s", key, value, strings.Join(wrong, "; ")))
		}
	}
	return all
}
