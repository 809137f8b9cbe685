// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package registration gives agents of add-ons on the member their credentials for the hub: what
// status.registrations of their ManagedClusterAddOn asks for. The controller's name is
// managedclusteraddon.registration.
//
// It watches the ManagedClusterAddOns in the cluster's namespace on the hub. For the hub's API server
// the credential is a certificate (driver csr) or a token (driver token), together with a kubeconfig,
// in Secret ADDON-hub-kubeconfig. With tokens it writes their account as subject into the status, as
// klusterlets do: managers grant rights to that subject. For other signers it is a certificate in Secret
// ADDON-SIGNER-client-cert. The Secrets are in the namespace of the add-on's agent. They are renewed in
// place, and deleted when the registration ends. decide.go holds the decisions, request.go requests
// certificates, token.go tokens. secrets.go writes the Secrets, and a record of them, by which the agent
// finds them after a restart.
//
// A certificate is requested with the agent's own certificate if it has one, because managers of
// add-ons identify the cluster by that name. The add-on's manager approves; nobody does here. Add-ons
// whose agent runs on another cluster, and Secrets that somebody else wrote, are not touched.
package registration
