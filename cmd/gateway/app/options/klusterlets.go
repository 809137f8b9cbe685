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

// Klusterlets says how clusters with agents of Open Cluster Management get in, with part
// OCMRegistration.
type Klusterlets struct {
	// AutoApprovedUsers are those whose clusters are let in without asking anybody.
	AutoApprovedUsers []string
	// SignerCert and SignerKey are the files of the authority that signs for klusterlets.
	// Empty: the hub's controller manager does.
	SignerCert, SignerKey string
	// Labels are on all that is made for clusters.
	Labels map[string]string
}

// AddFlags binds the options to a command line.
func (o *Klusterlets) AddFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.AutoApprovedUsers, "auto-approved-csr-users", o.AutoApprovedUsers, "With registration among --ocm: users whose clusters are accepted, and get their first certificate, without asking anybody. Whoever has a credential of theirs may let in any cluster that has no agent yet.")
	flags.StringVar(&o.SignerCert, "csr-signer-cert", o.SignerCert, "With registration among --ocm, on a hub whose API server nobody signs certificates for: file with the certificate, in PEM, of an authority of its --client-ca-file. Certificates of klusterlets are signed with it, and no others.")
	flags.StringToStringVar(&o.Labels, "ocm-labels", o.Labels, "With registration among --ocm: labels of what is made for clusters, their namespaces, roles and bindings, as KEY=VALUE.")
	flags.StringVar(&o.SignerKey, "csr-signer-key", o.SignerKey, "File with the key of --csr-signer-cert, in PEM.")
}

// Validate returns every error at once.
func (o *Klusterlets) Validate() []error {
	var all []error
	if (o.SignerCert == "") != (o.SignerKey == "") {
		all = append(all, errors.New("--csr-signer-cert and --csr-signer-key belong together: give both or neither"))
	}
	if slices.Contains(o.AutoApprovedUsers, "") {
		all = append(all, errors.New("--auto-approved-csr-users has an empty name"))
	}
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		value := o.Labels[key]
		wrong := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		if key == clusterv1.ClusterNameLabel {
			wrong = append(wrong, "it is the hub's")
		}
		if len(wrong) > 0 {
			all = append(all, fmt.Errorf("--ocm-labels %s=%s cannot be a label: %s", key, value, strings.Join(wrong, "; ")))
		}
	}
	return all
}
