// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"os"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	clusterv1beta2 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1beta2"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/clusterset"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/klusterlet"
	"fleetgate.io/fleetgate/pkg/cluster/hub/ocm/membermirror"
)

// withOCM is true if the suite should pass on a hub that also serves Open Cluster Management's API
// (make test-matrix). The results must be the same there.
func withOCM() bool { return os.Getenv("FLEETGATE_OCM") != "" }

// serveOCM installs the kinds on the hub, and gives the gateway the rights.
func serveOCM(ctx context.Context) {
	GinkgoHelper()
	Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	Expect(clusterv1beta2.AddToScheme(scheme)).To(Succeed())
	kinds, err := crds.ForHub(clusterv1.GroupName)
	Expect(err).NotTo(HaveOccurred())
	_, err = envtest.InstallCRDs(hubConf, envtest.CRDInstallOptions{CRDs: kinds})
	Expect(err).NotTo(HaveOccurred())
	applyRole(ctx, "klusterlets-rbac.yaml")
}

// showMembers runs the controllers of ManagedClusters beside those of placement.
func showMembers(mgr ctrl.Manager) {
	GinkgoHelper()
	Expect(clusterset.SetupWithManager(mgr)).To(Succeed())
	Expect((&membermirror.Reconciler{Client: mgr.GetClient(), Workers: 4}).SetupWithManager(mgr)).To(Succeed())
	Expect(klusterlet.SetupWithManager(gatewayConf, mgr, klusterlet.Options{
		Members: membermirror.Members{Hub: mgr.GetClient()},
		Workers: 4,
	})).To(Succeed())
}
