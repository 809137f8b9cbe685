// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/serving"
	"fleetgate.io/fleetgate/test/support/env"
)

// certManagerProgram is built from hack/certmanager.
const certManagerProgram = "../../../.fleetgate/bin/certmanager"

// installCertManager applies the CRDs that the cert-manager module ships.
func installCertManager(ctx context.Context) {
	GinkgoHelper()
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager").Output()
	Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "deploy", "crds", "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		content, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		definition := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal(content, &definition.Object)).To(Succeed())
		Expect(masters.Create(ctx, definition)).To(Succeed(), file)
	}
	Eventually(func() error { return masters.List(ctx, &cmv1.CertificateList{}) }).Should(Succeed())
}

// takesUpIssuers returns nil once cert-manager's controllers reconcile.
func takesUpIssuers(ctx context.Context) error {
	issuer := &cmv1.Issuer{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "probe"},
		Spec:       cmv1.IssuerSpec{IssuerConfig: cmv1.IssuerConfig{SelfSigned: &cmv1.SelfSignedIssuer{}}},
	}
	if err := masters.Create(ctx, issuer); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := masters.Get(ctx, client.ObjectKeyFromObject(issuer), issuer); err != nil {
		return err
	}
	for _, condition := range issuer.Status.Conditions {
		if condition.Type == cmv1.IssuerConditionReady && condition.Status == cmmeta.ConditionTrue {
			return nil
		}
	}
	return errors.New("cert-manager has not reconciled an Issuer yet")
}

// renew requests a new certificate the way cert-manager's CLI does.
func renew(ctx context.Context, name string) {
	GinkgoHelper()
	certificate := &cmv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1beta1.SystemNamespace, Name: name}}
	Expect(masters.Get(ctx, client.ObjectKeyFromObject(certificate), certificate)).To(Succeed())
	before := secretOf(ctx, name)
	certificate.Status.Conditions = append(certificate.Status.Conditions, cmv1.CertificateCondition{
		Type: cmv1.CertificateConditionIssuing, Status: cmmeta.ConditionTrue, Reason: "ManuallyTriggered", LastTransitionTime: &metav1.Time{Time: time.Now()},
	})
	Expect(masters.Status().Update(ctx, certificate)).To(Succeed())
	Eventually(func() []byte { return secretOf(ctx, name) }).ShouldNot(Equal(before))
}

func secretOf(ctx context.Context, certificate string) []byte {
	GinkgoHelper()
	var secret corev1.Secret
	Expect(masters.Get(ctx, client.ObjectKey{Namespace: clusterv1beta1.SystemNamespace, Name: certificate}, &secret)).To(Succeed())
	return secret.Data[corev1.TLSCertKey]
}

var _ = Describe("Certificates of cert-manager", Serial, Label("matrix"), func() {
	BeforeEach(func(ctx SpecContext) {
		if _, err := os.Stat(certManagerProgram); errors.Is(err, fs.ErrNotExist) {
			Skip("cert-manager's controllers are not built: make test-matrix builds and runs them")
		}
		installCertManager(ctx)
		kubeconfig, err := hub.Kubeconfig("cert-manager", "system:masters")
		Expect(err).NotTo(HaveOccurred())
		program, err := filepath.Abs(certManagerProgram)
		Expect(err).NotTo(HaveOccurred())
		controllers, err := env.NewProcess(env.ProcessOptions{
			Name: "certmanager", Dir: GinkgoT().TempDir(), Path: program, Args: []string{"-kubeconfig=" + kubeconfig}, Ready: takesUpIssuers,
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(controllers.Start(ctx)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(controllers.Stop(ctx)).To(Succeed()) })
	})

	It("are requested, served once ready, and renewed under load without a failed call", SpecTimeout(5*time.Minute), func(ctx SpecContext) {
		certificates := serving.FromCertManager(gateway.client, clusterv1beta1.SystemNamespace, []string{serviceName})
		port := balance(replica(ctx, certificates))
		leadToTheGatewayAgain()
		lead(ctx, port, certificates)
		calls := startLoad(ctx)
		served := func() []byte {
			cert, _ := certificates.CurrentCertKeyContent()
			return cert
		}

		By("renewing the certificate")
		renew(ctx, serving.ServingCertificate)
		Eventually(served).Should(Equal(secretOf(ctx, serving.ServingCertificate)))
		calls.more(100)

		By("renewing the authority too")
		before := served()
		renew(ctx, serving.CACertificate)
		renew(ctx, serving.ServingCertificate)
		Eventually(func() bool {
			bundle, err := certificates.CABundle(ctx)
			Expect(err).NotTo(HaveOccurred())
			return bytes.Contains(bundle, bytes.TrimSpace(secretOf(ctx, serving.CACertificate)))
		}).Should(BeTrue())
		Expect(served()).To(Equal(before), "the new certificate waits for its bundle")
		lead(ctx, port, certificates)
		Eventually(served, "2m").Should(Equal(secretOf(ctx, serving.ServingCertificate)))
		calls.more(100)
		Expect(calls.end()).To(Succeed())
	})
})
