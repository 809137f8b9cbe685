// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/cluster/agent/enroll"
	"fleetgate.io/fleetgate/pkg/kube/kubeconfig"
)

const maxBootstrapBytes = 1 << 20

// Config contains the options with defaults applied and files read.
type Config struct {
	Options
	// MemberREST reaches the member's own API server.
	MemberREST *rest.Config
	// Bootstrap has the registration values of a file, or is nil.
	Bootstrap *enroll.Bootstrap
	// Missing names the file with registration values if it does not exist.
	Missing string
	// HubREST reaches the hub with an identity that the user manages. If nil, the agent registers.
	HubREST *rest.Config
}

// Config reads the files that the options name. Call Validate first.
func (o *Options) Config() (*Config, error) {
	member, err := loadMember(o.MemberKubeconfig)
	if err != nil {
		return nil, err
	}
	member.QPS = -1 // Priority and fairness of the member's API server limit the agent.
	bootstrap, missing, err := o.loadBootstrap()
	if err != nil {
		return nil, err
	}
	hub, err := o.loadHub()
	if err != nil {
		return nil, err
	}
	config := &Config{Options: *o, MemberREST: member, Bootstrap: bootstrap, Missing: missing, HubREST: hub}
	config.Member.Namespace = cmp.Or(o.Member.Namespace, o.ofHub(clusterv1beta1.SystemNamespace))
	if !o.DoesWorksOnly() {
		// Agents of a cluster have different namespaces, and the namespace does not depend on the URL of the hub.
		config.Works.AgentID = cmp.Or(o.Works.AgentID, config.Member.Namespace)
	}
	config.Accounts.Namespace = cmp.Or(o.Accounts.Namespace, o.ofHub(authenticationv1beta1.AccountNamespace))
	return config, nil
}

// loadHub returns nil for an agent that registers.
func (o *Options) loadHub() (*rest.Config, error) {
	if o.Hub.MemberName == "" {
		return nil, nil
	}
	if o.Hub.Kubeconfig == "" {
		return &rest.Config{
			Host: o.Hub.URL, TLSClientConfig: rest.TLSClientConfig{CAFile: o.Hub.CAFile}, BearerTokenFile: o.Hub.TokenFile,
		}, nil
	}
	hub, err := clientcmd.BuildConfigFromFlags("", o.Hub.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading --hub-kubeconfig: %w", err)
	}
	return hub, nil
}

func loadMember(path string) (*rest.Config, error) {
	if path == "" {
		config, err := kubeconfig.InPod()
		if err != nil {
			return nil, fmt.Errorf("finding the member: %w: run the agent in a Pod of the member or set --member-kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading --member-kubeconfig: %w", err)
	}
	return config, nil
}

// loadBootstrap reads the file. A missing file is not an error, because it may be removed
// after the agent has registered.
func (o *Options) loadBootstrap() (bootstrap *enroll.Bootstrap, missing string, err error) {
	flag, path, parse := "--bootstrap-file", o.Registration.BootstrapFile, enroll.ParseBootstrap
	if o.Registration.BootstrapKubeconfig != "" {
		flag, path, parse = "--bootstrap-kubeconfig", o.Registration.BootstrapKubeconfig, enroll.ParseBootstrapKubeconfig
	}
	if path == "" {
		return nil, "", nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, flag + " " + path + " does not exist", nil
	}
	if err == nil && info.Size() > maxBootstrapBytes {
		err = fmt.Errorf("it has more than %d bytes", maxBootstrapBytes)
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", flag, err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("reading %s: %w", flag, err)
	}
	bootstrap, err = parse(content)
	if err != nil {
		return nil, "", fmt.Errorf("reading %s %s: %w", flag, path, err)
	}
	return bootstrap, "", nil
}
