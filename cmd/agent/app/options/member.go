// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// Values of member.components.
const (
	componentAll   = "all"
	componentWorks = "works"
)

// DoesWorksOnly reports whether the agent only applies ManifestWorks.
func (o *Options) DoesWorksOnly() bool {
	return slices.Equal(o.Member.Components, []string{componentWorks})
}

func (o *Options) addMemberFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.MemberKubeconfig, "member-kubeconfig", o.MemberKubeconfig, "Path of the kubeconfig for the member. If unset, the agent uses the ServiceAccount of its Pod.")
	flags.StringVar(&o.Member.Namespace, "namespace", o.Member.Namespace,
		"Namespace of the agent on the member, where it stores its key and its credential. If unset, "+clusterv1beta1.SystemNamespace+", or "+clusterv1beta1.SystemNamespace+"-<hub name> with --hub-name.")
	flags.StringSliceVar(&o.Member.Components, "components", o.Member.Components,
		"all, or works. works: only apply the ManifestWorks in the hub namespace of the same name as --member-name, for a cluster that another agent registers.")
	flags.StringVar(&o.Accounts.Namespace, "account-namespace", o.Accounts.Namespace,
		"Namespace on the member for the ServiceAccounts of ManagedServiceAccounts. If unset, "+authenticationv1beta1.AccountNamespace+", or "+authenticationv1beta1.AccountNamespace+"-<hub name> with --hub-name. Accounts in a previous namespace stay; delete that namespace.")
	configfile.Override(flags, "namespace", "member.namespace")
	configfile.Override(flags, "components", "member.components")
	configfile.Override(flags, "account-namespace", "accounts.namespace")
}

// validateMember validates names that agents of several hubs on one member must not share, too.
func (o *Options) validateMember() field.ErrorList {
	var all field.ErrorList
	at := field.NewPath("member")
	for path, namespace := range map[*field.Path]string{at.Child("namespace"): o.Member.Namespace, field.NewPath("accounts", "namespace"): o.Accounts.Namespace} {
		if namespace != "" {
			all = append(all, configfile.Invalid(path, namespace, validation.IsDNS1123Label(namespace)...)...)
		}
	}
	if !o.DoesWorksOnly() && !slices.Equal(o.Member.Components, []string{componentAll}) {
		all = append(all, field.Invalid(at.Child("components"), o.Member.Components, "must be either all or works"))
	}
	return append(all, configfile.Without(at.Child("components"), o.DoesWorksOnly() && o.Hub.MemberName == "",
		"hub.memberName (--member-name), and hub.kubeconfig (--hub-kubeconfig) or hub.url (--hub-url), because such an agent does not register")...)
}

// ofHub returns the name for the first hub, or with a suffix for a named hub.
func (o *Options) ofHub(name string) string {
	if o.Hub.Name == "" {
		return name
	}
	return name + "-" + o.Hub.Name
}
