// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package env runs real Kubernetes control planes on loopback: for integration and
// end-to-end tests, and for `make up`, whose clusters stay up after the command ends.
//
// # What a cluster is
//
// [Start] runs etcd, kube-apiserver and kube-controller-manager as processes, each
// cluster with its own certificate authorities, keys, data and free ports. With
// Options.Nodes a kube-scheduler and KWOK join them: nodes and Pods are then simulated,
// everything else is real. A hub has no nodes, a member has some.
//
// Tests can rely on: Node and RBAC authorization; anonymous requests only for the
// health endpoints; ServiceAccount tokens, CertificateSigningRequests and ca.crt
// ConfigMaps that work; an aggregation layer with a front proxy identity (an APIService
// that points outside the cluster needs a Service of type ExternalName); Secrets that are
// encrypted in etcd; every controller of Kubernetes, and admission as it is by default.
//
// Unlike a cluster with machines it has no kubelet, no kube-proxy, no DNS, no
// endpoints behind the Service default/kubernetes.
//
// # Use
//
//	hub, err := env.Start(ctx, env.Options{Name: "hub"})
//	...
//	defer hub.Stop(ctx)
//	client, err := kubernetes.NewForConfig(hub.Config())
//
// [StartAll] starts several at once. [Cluster.Config] is the break-glass administrator
// (system:masters); [Cluster.ConfigFor] issues a client certificate for anyone else, and
// [Cluster.Kubeconfig] writes one to a file. The programs of a cluster are its fields, each
// a [Process]: c.APIServer.Freeze(), c.APIServer.Restart(ctx), c.Etcd.Kill(ctx). A [Link]
// is a connection that a test can cut or stall. Process and Link do not depend on Kubernetes:
// suites run the gateway and agents with them too.
//
// # Lifetime
//
// Without Options.Detached every process ends with its parent, even when the parent panics or is
// killed (on Linux). With it, a process runs in its own session and is recorded in its folder:
// [Load] finds a cluster, [Processes] every process below a folder. A record has the boot and the
// start time in addition to the process ID, so that a later process with the same ID is never
// signalled.
//
// `make kube` builds the programs, from hack/kube and hack/kwok, into .fleetgate/bin. A missing
// program is an error, never a skipped test.
package env
