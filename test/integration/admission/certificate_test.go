// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apis/crds"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
	"fleetgate.io/fleetgate/test/support/env"
)

// callerProof returns the PEM of a client certificate with this name, of its own CA, and of its
// key.
func callerProof(name string) (certificate, key []byte) {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	signed, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, private)
	Expect(err).NotTo(HaveOccurred())
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: signed.Raw}), key
}

// writeCaller writes the kubeconfig that names the API server's client certificate for webhooks, as
// docs/reference/admission.md describes it.
func writeCaller(path string, port int, caller clientcmdapi.AuthInfo) {
	GinkgoHelper()
	config := clientcmdapi.NewConfig()
	config.AuthInfos[fmt.Sprintf("%s.%s.svc:%d", service, clusterv1beta1.SystemNamespace, port)] = &caller
	Expect(clientcmd.WriteToFile(*config, path)).To(Succeed())
}

// startDirectGateway serves webhooks that accept client certificates of this CA, and configures the
// hub to call them directly instead of through its aggregation layer.
func startDirectGateway(ctx context.Context, of *env.Cluster, port int, ca []byte) {
	GinkgoHelper()
	admin := clientFor(of.Config())
	definitions, err := crds.ForHub(placementv1beta1.GroupVersion.Group, clusterv1beta1.GroupVersion.Group)
	Expect(err).NotTo(HaveOccurred())
	installer := &install.Installer{
		Client: admin, Definitions: definitions, Version: "v0.1.0", Clock: clock.RealClock{},
		Hub: install.Hub{Namespace: clusterv1beta1.SystemNamespace, Service: service, ExternalName: "127.0.0.1", APIPort: 8443},
	}
	Expect(installer.InstallBase(ctx)).To(Succeed())
	Expect(installer.InstallDefinitions(ctx)).To(Succeed())
	callers, err := dynamiccertificates.NewStaticCAContent("callers", ca)
	Expect(err).NotTo(HaveOccurred())
	certificates := serving.FromAuthority(admin, clusterv1beta1.SystemNamespace, []string{service + "." + clusterv1beta1.SystemNamespace + ".svc"})
	manager, err := ctrl.NewManager(of.Config(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: intake.NewServer(intake.Options{
			Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), GetCertificate: certificates.GetCertificate, ClientCA: callers,
		}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(manager.Add(certificates)).To(Succeed())
	Expect(webhook.Register(manager, webhook.Strictness{})).To(Succeed())
	running, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- manager.Start(running) }()
	DeferCleanup(func() {
		stop()
		Eventually(done).Should(Receive(BeNil()))
	})
	Expect(certificates.WaitForFirst(ctx)).To(Succeed())
	Eventually(func() error { return manager.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
	serving, err := certificates.CABundle(ctx)
	Expect(err).NotTo(HaveOccurred())
	installer.Extra = webhook.Configurations(webhook.Endpoint{Namespace: clusterv1beta1.SystemNamespace, Service: service, Port: int32(port), CABundle: serving})
	Expect(installer.InstallServing(ctx)).To(Succeed())
}

var _ = Describe("A hub whose API server presents a client certificate to the webhooks", func() {
	It("gets reviews answered, and rejected when it no longer presents the certificate", func(ctx SpecContext) {
		ports, err := env.FreePorts(1)
		Expect(err).NotTo(HaveOccurred())
		dir := GinkgoT().TempDir()
		caller, admissionConfig := filepath.Join(dir, "webhooks.kubeconfig"), filepath.Join(dir, "admission.yaml")
		certificate, key := callerProof("api-server")
		writeCaller(caller, ports[0], clientcmdapi.AuthInfo{ClientCertificateData: certificate, ClientKeyData: key})
		plugin := "- name: %s\n  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: " + caller + "}\n"
		Expect(os.WriteFile(admissionConfig, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"+
			fmt.Sprintf(plugin, "ValidatingAdmissionWebhook")+fmt.Sprintf(plugin, "MutatingAdmissionWebhook")), 0o600)).To(Succeed())
		certified, err := env.Start(ctx, env.Options{Name: "certified", APIServerFlags: []string{"--admission-control-config-file=" + admissionConfig}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(certified.Stop(ctx)).To(Succeed()) })
		startDirectGateway(ctx, certified, ports[0], certificate)

		admin := clientFor(certified.Config())
		wrong, right := envelope(map[string]any{"kind": "Nothing"}), clusterPlacement(selecting("v1", "Namespace", "shop"))
		Eventually(func() error { return admin.Create(ctx, wrong.DeepCopyObject().(client.Object), client.DryRunAll) }).
			Should(MatchError(And(ContainSubstring("denied the request"), ContainSubstring("is no Kubernetes object"))))
		Eventually(func() error { return admin.Create(ctx, right) }).Should(Succeed())
		Expect(right.Annotations).To(HaveKey(placementv1beta1.AuthorMayAnnotation), "the mutating review was answered too")

		By("presenting another certificate of the same name, then none")
		other, otherKey := callerProof("api-server")
		for _, shown := range []clientcmdapi.AuthInfo{{ClientCertificateData: other, ClientKeyData: otherKey}, {}} {
			writeCaller(caller, ports[0], shown)
			Expect(certified.APIServer.Restart(ctx)).To(Succeed())
			Eventually(func() error {
				return admin.Create(ctx, clusterPlacement(selecting("v1", "Namespace", "shop")), client.DryRunAll)
			}).Should(MatchError(And(ContainSubstring("failed calling webhook"), ContainSubstring("asked for the client to provide credentials"))))
		}
	})
})
