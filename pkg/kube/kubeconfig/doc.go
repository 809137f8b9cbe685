// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeconfig reads kubeconfigs from untrusted sources.
//
// A kubeconfig can name a command to run, files to read and servers to call. The gateway reads
// kubeconfigs that users put into Secrets, and an agent those that come with a registration.
// Therefore only listed fields are allowed, and everything else is refused: commands, plug-ins and
// paths never take effect on the machine that reads them.
//
// [Parse] uses only the current context. It opens no file and no connection. Its errors name the
// field and the remedy, never a value that could be a secret.
//
// [InPod] is the configuration of a Pod for its own cluster.
package kubeconfig
