// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"time"
)

const (
	// BreakGlass is the user of Cluster.Config, in group system:masters. RBAC does not apply to it,
	// so use it to set clusters up, not to test rights.
	BreakGlass = "break-glass"
	// mastersGroup is the group that the API server allows everything.
	mastersGroup = "system:masters"
)

// User is the user of a client certificate.
type User struct {
	Name   string
	Groups []string
}

// Options configure a cluster. Only Name is required.
type Options struct {
	// Name appears in messages and in names of simulated nodes: lower case letters, digits and
	// dashes.
	Name string
	// Dir is the cluster's folder: data, logs, certificates, kubeconfigs, records of processes. If
	// unset, a temporary folder, which Stop removes.
	Dir string
	// Nodes is the number of simulated nodes. With 0 there is no scheduler and no KWOK, so Pods
	// stay pending.
	Nodes int
	// Address is an address of this machine at which Pods and other clusters reach the API server,
	// for a cluster with real nodes (StartNode). It adds a kube-scheduler. If unset, the API server
	// listens on loopback only.
	Address string
	// IPv6 makes everything listen on ::1 only, and gives Services IPv6 addresses.
	IPv6 bool
	// Admin gets a kubeconfig in Dir, named after it, but no RBAC rule. The default is user "admin"
	// in group "fleetgate:admins".
	Admin User
	// Detached lets the cluster outlive the process that starts it; etcd then syncs to disk.
	Detached bool
	// Audit records the metadata of every request in audit.log of Dir.
	Audit bool
	// APIServerFlags are appended to kube-apiserver's, e.g. --feature-gates=...
	APIServerFlags []string
	// BinDir is the folder of the programs. The default is .fleetgate/bin of this module.
	BinDir string
	// StartTimeout bounds the start of one program. The default is four minutes.
	StartTimeout time.Duration
	// Progress receives a short line for each program that starts. StartAll calls it from several
	// goroutines.
	Progress func(string) `json:"-"`
}

var clusterName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,40}[a-z0-9])?$`)

func (o Options) withDefaults() (Options, error) {
	if !clusterName.MatchString(o.Name) {
		return o, fmt.Errorf("cluster name %q: want lower case letters, digits and dashes, at most 42", o.Name)
	}
	if o.Nodes < 0 {
		return o, errors.New("a cluster cannot have fewer than 0 nodes")
	}
	if o.IPv6 && o.Address != "" {
		return o, errors.New("a cluster with an address is one of IPv4")
	}
	if o.Address != "" && (o.Nodes > 0 || net.ParseIP(o.Address) == nil) {
		return o, errors.New("a cluster with an address has an IP address, and no simulated nodes")
	}
	if o.Detached && o.Dir == "" {
		return o, errors.New("a detached cluster needs a folder of its own, or nobody finds it again")
	}
	if o.Admin.Name == "" {
		o.Admin = User{Name: "admin", Groups: []string{"fleetgate:admins"}}
	}
	if o.BinDir == "" {
		home, err := Home()
		if err != nil {
			return o, err
		}
		o.BinDir = binDir(home)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	return o, nil
}
