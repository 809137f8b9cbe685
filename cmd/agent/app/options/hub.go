// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"net/url"
	"strconv"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/kube/configfile"
)

// maxHubName is limited by the longest name that contains it, that of the accounts' namespace.
const maxHubName = 16

func (o *Options) addHubFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Hub.Name, "hub-name", o.Hub.Name, "Name of this hub, at most "+strconv.Itoa(maxHubName)+" characters, if the member belongs to several hubs. It is part of the names of objects that the agent creates on the member. Leave it unset for the only hub or for the first one. Set it before the agent registers.")
	flags.StringVar(&o.Hub.MemberName, "member-name", o.Hub.MemberName, "Name of the MemberCluster that names the identity of this agent. The agent then does not register and uses the hub credential in the --hub-* flags.")
	flags.StringVar(&o.Hub.URL, "hub-url", o.Hub.URL, "With --member-name: URL of the hub's API server.")
	flags.StringVar(&o.Hub.CAFile, "hub-ca-file", o.Hub.CAFile, "With --hub-url: PEM file that verifies it. If unset, the CAs of the operating system are used.")
	flags.StringVar(&o.Hub.TokenFile, "hub-token-file", o.Hub.TokenFile, "With --hub-url: file with a bearer token that another program refreshes. The agent reads it again at least once a minute.")
	flags.StringVar(&o.Hub.Kubeconfig, "hub-kubeconfig", o.Hub.Kubeconfig, "With --member-name, instead of --hub-url: path of the kubeconfig for the hub. An exec plugin in it is run for credentials.")
	for name, path := range map[string]string{
		"hub-name": "hub.name", "member-name": "hub.memberName", "hub-url": "hub.url", "hub-ca-file": "hub.caFile", "hub-token-file": "hub.tokenFile", "hub-kubeconfig": "hub.kubeconfig",
	} {
		configfile.Override(flags, name, path)
	}
}

func (o *Options) addRegistrationFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Registration.BootstrapFile, "bootstrap-file", o.Registration.BootstrapFile,
		"File with the values of a ClusterRegistrationToken, in the format of its Secret. Needed until the agent is registered. If unset, the agent reads the Secret "+enroll.BootstrapSecret+" in --namespace.")
	flags.StringVar(&o.Registration.BootstrapKubeconfig, "bootstrap-kubeconfig", o.Registration.BootstrapKubeconfig,
		"Instead of --bootstrap-file: kubeconfig with the token of a ClusterRegistrationToken. Its context names the namespace of the token. The agent uses and keeps its proxy-url.")
	flags.StringVar(&o.Registration.ClientID, "client-id", o.Registration.ClientID, "Text that identifies this cluster to the hub, for a Cluster that was created there before. If unset, the UID of the namespace kube-system is used.")
	configfile.Override(flags, "bootstrap-file", "registration.bootstrapFile")
	configfile.Override(flags, "bootstrap-kubeconfig", "registration.bootstrapKubeconfig")
	configfile.Override(flags, "client-id", "registration.clientID")
}

// validateHub validates that exactly one way of authentication to the hub is complete.
func (o *Options) validateHub() field.ErrorList {
	at, hub := field.NewPath("hub"), &o.Hub
	var all field.ErrorList
	if hub.Name != "" {
		all = append(all, configfile.Invalid(at.Child("name"), hub.Name, validation.IsDNS1123Label(hub.Name)...)...)
		if len(hub.Name) > maxHubName {
			all = append(all, field.TooLong(at.Child("name"), hub.Name, maxHubName))
		}
	}
	given := hub.URL != "" || hub.Kubeconfig != ""
	if hub.MemberName == "" {
		return append(all, configfile.Without(at, given || hub.CAFile != "" || hub.TokenFile != "", "hub.memberName (--member-name)")...)
	}
	namespace := clusterv1beta1.MemberNamespace(hub.MemberName)
	if o.DoesWorksOnly() {
		namespace = hub.MemberName
	}
	all = append(all, configfile.Invalid(at.Child("memberName"), hub.MemberName, validation.IsDNS1123Label(namespace)...)...)
	if !given || hub.URL != "" && hub.Kubeconfig != "" {
		all = append(all, field.Required(at, "with memberName, set either url (--hub-url) or kubeconfig (--hub-kubeconfig)"))
	}
	if hub.URL == "" {
		return all
	}
	if parsed, err := url.Parse(hub.URL); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
		all = append(all, field.Invalid(at.Child("url"), hub.URL, "must begin with https:// and name a host"))
	}
	if hub.TokenFile == "" {
		all = append(all, field.Required(at.Child("tokenFile"), "hub.url (--hub-url) needs it"))
	}
	return all
}

func (o *Options) validateRegistration() field.ErrorList {
	at, given := field.NewPath("registration"), &o.Registration
	var all field.ErrorList
	for key, value := range given.Labels {
		all = append(all, configfile.Invalid(at.Child("labels").Key(key), value, append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)...)...)
	}
	if given.BootstrapFile != "" && given.BootstrapKubeconfig != "" {
		all = append(all, field.Forbidden(at.Child("bootstrapKubeconfig"), "registration.bootstrapFile (--bootstrap-file) is set too: choose one"))
	}
	if o.Hub.MemberName == "" {
		return all
	}
	if given.HubCertificate {
		all = append(all, field.Forbidden(at.Child("hubCertificate"), "needs an agent that registers: a hub issues certificates only to accounts that it created"))
	}
	if given.BootstrapFile != "" || given.BootstrapKubeconfig != "" {
		all = append(all, field.Forbidden(at, "an agent with hub.memberName (--member-name) does not register: remove bootstrapFile and bootstrapKubeconfig"))
	}
	return all
}
