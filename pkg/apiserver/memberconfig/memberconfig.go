// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memberconfig changes a kubeconfig for the hub into one for a member, or for many at once.
// The user and its credentials do not change.
package memberconfig

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
	"fleetgate.io/fleetgate/pkg/apiserver/paths"
)

// Target is the server of a kubeconfig: a member, or a view of many.
type Target struct {
	// Name is the member's, or the view's.
	Name string
	// Fleet is true for a view.
	Fleet bool
}

// Member is the target for a member's name. The error says why the name is invalid.
func Member(name string) (Target, error) {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return Target{}, fmt.Errorf("%q is not the name of a member: %s", name, strings.Join(problems, ", "))
	}
	return Target{Name: name}, nil
}

// View is the target for a view's name: that of a FleetView, or a selector as in
// docs/how-to/fleet-view.md. If unset, it is all members.
func View(name string) (Target, error) {
	if name == "" {
		return Target{Name: viewv1alpha1.AllMembers, Fleet: true}, nil
	}
	if err := paths.ValidateView(name); err != nil {
		return Target{}, err
	}
	return Target{Name: name, Fleet: true}, nil
}

// Paths are those of the target on the hub, and at the gateway's own endpoint.
func (t Target) Paths() (hub, endpoint string) {
	name := url.PathEscape(t.Name)
	if t.Fleet {
		return paths.View + name + "/proxy", paths.ViewEndpoint + name
	}
	return paths.Member + name + "/proxy", paths.MemberEndpoint + name
}

// Context is the name of the context, next to the hub's.
func (t Target) Context(hub string) string {
	if t.Fleet {
		return hub + "-fleet-" + t.Name
	}
	return hub + "-" + t.Name
}

// Route is how a member is reached: through the hub, or through the gateway's own endpoint.
type Route struct {
	// Endpoint is the URL of the gateway's own endpoint. An asterisk as the first label of its host
	// is replaced by the member's name, where members have host names. If unset, the hub is used.
	Endpoint string
	// CA verifies it, in PEM. If unset, its certificate must be publicly trusted.
	CA []byte
}

// at is the target's URL at the gateway's own endpoint.
func (t Target) at(endpoint string) (string, error) {
	endpoint = strings.TrimSuffix(endpoint, "/")
	before, after, own := strings.Cut(endpoint, "://*.")
	switch {
	case !own:
		_, path := t.Paths()
		return endpoint + path, nil
	case t.Fleet:
		return "", fmt.Errorf("many members have no host of their own at %s: name the gateway's endpoint itself", endpoint)
	}
	return before + "://" + t.Name + "." + after, nil
}

// LeadsToMember is true if a server's URL is that of a member or a view, and not the hub's.
func LeadsToMember(server string) bool {
	for _, prefix := range []string{paths.Member, paths.MemberEndpoint, paths.View, paths.ViewEndpoint} {
		if strings.Contains(server, prefix) {
			return true
		}
	}
	return false
}

// For is one context of a kubeconfig for the hub, changed to reach a member. The user is the same,
// so the context, with its own cluster, can be added next to the original.
func For(own *clientcmdapi.Config, contextName string, to Target, by Route) (*clientcmdapi.Config, error) {
	if contextName == "" {
		contextName = own.CurrentContext
	}
	chosen, ok := own.Contexts[contextName]
	if !ok {
		return nil, fmt.Errorf("your kubeconfig has no context %q: choose one with --context", contextName)
	}
	hub, ok := own.Clusters[chosen.Cluster]
	if !ok {
		return nil, fmt.Errorf("context %q of your kubeconfig names cluster %q, which it does not have", contextName, chosen.Cluster)
	}
	if LeadsToMember(hub.Server) {
		return nil, fmt.Errorf("context %q leads to a member already (%s): choose the hub's with --context", contextName, hub.Server)
	}
	cluster := hub.DeepCopy()
	cluster.LocationOfOrigin = ""
	behindHub, _ := to.Paths()
	cluster.Server = strings.TrimSuffix(hub.Server, "/") + behindHub
	if by.Endpoint != "" {
		server, err := to.at(by.Endpoint)
		if err != nil {
			return nil, err
		}
		cluster.Server = server
		cluster.CertificateAuthority, cluster.CertificateAuthorityData = "", by.CA
		cluster.TLSServerName, cluster.InsecureSkipTLSVerify = "", false
	}
	name := to.Context(contextName)
	context := chosen.DeepCopy()
	context.Cluster, context.LocationOfOrigin = name, ""
	merged := clientcmdapi.NewConfig()
	merged.CurrentContext = name
	merged.Clusters[name], merged.Contexts[name] = cluster, context
	if user, ok := own.AuthInfos[chosen.AuthInfo]; ok {
		user = user.DeepCopy()
		user.LocationOfOrigin = ""
		merged.AuthInfos[chosen.AuthInfo] = user
	}
	return merged, nil
}

// AddTo adds contexts to a file without changing its current one. Existing users, clusters and
// contexts of the same name must be equal; an existing context keeps its namespace.
func AddTo(path string, merged *clientcmdapi.Config) error {
	present, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, os.ErrNotExist) {
		present, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	// The file's own paths do not change; they are resolved only for the comparison.
	resolved := present.DeepCopy()
	if err := clientcmd.ResolveLocalPaths(resolved); err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	for name, user := range merged.AuthInfos {
		before, ok := resolved.AuthInfos[name]
		if !ok {
			present.AuthInfos[name] = user
			continue
		}
		before.LocationOfOrigin = ""
		if !equality.Semantic.DeepEqual(before, user) {
			return fmt.Errorf("%s has another user %q: choose another file", path, name)
		}
	}
	for name, cluster := range merged.Clusters {
		before, ok := resolved.Clusters[name]
		if ok && !sameCluster(before, cluster) {
			return fmt.Errorf("%[1]s has another cluster %[2]q: choose another file, or remove it first: kubectl config delete-cluster %[2]s --kubeconfig %[1]s", path, name)
		}
		if !ok {
			present.Clusters[name] = cluster
		}
	}
	for name, context := range merged.Contexts {
		before, ok := resolved.Contexts[name]
		if ok && (before.Cluster != context.Cluster || before.AuthInfo != context.AuthInfo) {
			return fmt.Errorf("%[1]s has another context %[2]q: choose another file, or give it another name first: kubectl config rename-context %[2]s NAME --kubeconfig %[1]s", path, name)
		}
		if !ok {
			present.Contexts[name] = context
		}
	}
	if present.CurrentContext == "" {
		present.CurrentContext = merged.CurrentContext
	}
	if err := clientcmd.WriteToFile(*present, path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// sameCluster is true for clusters with the same server and settings.
func sameCluster(a, b *clientcmdapi.Cluster) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, c := range []*clientcmdapi.Cluster{a, b} {
		c.LocationOfOrigin, c.Extensions = "", nil
	}
	return equality.Semantic.DeepEqual(a, b)
}
