// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package addons_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"fleetgate.io/fleetgate/pkg/apis/crds"
	clusterv1 "fleetgate.io/fleetgate/pkg/apis/ocm/cluster/v1"
	"fleetgate.io/fleetgate/test/support/build"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/onehub"
)

// klusterletPrograms is the folder with the programs registration and work of Open Cluster Management. If
// unset, the agent of this project applies ManifestWorks with the identity of a klusterlet.
const klusterletPrograms = "FLEETGATE_KLUSTERLET"

// runKlusterlet applies the ManifestWorks of the spoke like its klusterlet.
func (b *bridged) runKlusterlet(ctx context.Context) {
	GinkgoHelper()
	if programs := os.Getenv(klusterletPrograms); programs != "" {
		b.runUpstream(ctx, programs)
		return
	}
	b.connected(ctx, "spoke")
	atHub, err := b.fleet.Hub.Kubeconfig("system:open-cluster-management:spoke:abcde", "system:open-cluster-management:spoke", "system:open-cluster-management:managed-clusters")
	Expect(err).NotTo(HaveOccurred())
	home, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	started(ctx, "klusterlet", filepath.Join(home, "bin", "agent"),
		"--components=works", "--hub-kubeconfig="+atHub, "--member-kubeconfig="+b.spoke.Admin, "--member-name=spoke", "--agent-id=abcde",
		"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0")
}

func started(ctx context.Context, name, path string, args ...string) {
	GinkgoHelper()
	process, err := env.NewProcess(env.ProcessOptions{Name: name, Dir: GinkgoT().TempDir(), Path: path, Args: args})
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Start(ctx)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		if log, err := os.ReadFile(process.LogPath()); err == nil && CurrentSpecReport().Failed() {
			GinkgoWriter.Println(string(log))
		}
		Expect(process.Stop(ctx)).To(Succeed())
	})
}

// runUpstream runs both agents of a klusterlet: one registers with a bootstrap token, the other one uses
// its certificate.
func (b *bridged) runUpstream(ctx context.Context, programs string) {
	GinkgoHelper()
	definitions, err := crds.Named(crds.AppliedManifestWorks, crds.ClusterClaims)
	onehub.Serve(b.spoke.Cluster, definitions, err)
	atHub, err := kubernetes.NewForConfig(build.Unlimited(b.fleet.Hub.Config()))
	Expect(err).NotTo(HaveOccurred())
	token, err := atHub.CoreV1().ServiceAccounts("open-cluster-management").CreateToken(ctx, "agent-registration-bootstrap",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](3600)}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	config := rest.AnonymousClientConfig(b.fleet.Hub.Config())
	config.BearerToken = token.Status.Token
	dir := GinkgoT().TempDir()
	bootstrap, hubDir := filepath.Join(dir, "bootstrap.kubeconfig"), filepath.Join(dir, "hub")
	Expect(env.WriteKubeconfig(bootstrap, config)).To(Succeed())
	Expect(os.Mkdir(hubDir, 0o700)).To(Succeed())
	b.spoke.Kubectl(ctx, "", "create", "namespace", "open-cluster-management-agent")
	ports, err := env.FreePorts(2)
	Expect(err).NotTo(HaveOccurred())
	started(ctx, "registration", filepath.Join(programs, "registration"), "agent", "--kubeconfig="+b.spoke.Admin, "--bootstrap-kubeconfig="+bootstrap,
		"--hub-kubeconfig-dir="+hubDir, "--spoke-cluster-name=spoke", "--disable-leader-election", fmt.Sprintf("--listen=127.0.0.1:%d", ports[0]))

	By("approving the certificate of the klusterlet")
	Eventually(func(g Gomega) {
		requests, err := atHub.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{LabelSelector: clusterv1.ClusterNameLabel + "=spoke"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(requests.Items).NotTo(BeEmpty())
		request := &requests.Items[0]
		request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByAPerson",
		})
		_, err = atHub.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
	}).Should(Succeed())
	kubeconfig := filepath.Join(hubDir, "kubeconfig")
	Eventually(kubeconfig).Should(BeAnExistingFile())
	started(ctx, "work", filepath.Join(programs, "work"), "agent", "--kubeconfig="+b.spoke.Admin, "--hub-kubeconfig="+kubeconfig,
		"--workload-source-driver=kube", "--workload-source-config="+kubeconfig,
		"--spoke-cluster-name=spoke", "--agent-id=abcde", "--disable-leader-election", fmt.Sprintf("--listen=127.0.0.1:%d", ports[1]))
}
