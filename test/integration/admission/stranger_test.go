// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
	"fleetgate.io/fleetgate/pkg/webhook/intake"
)

const envelopePath = "/validate-placement.kubernetes-fleet.io-v1beta1-resourceenvelope"

// forged is a review about another user. A webhook that answers it tells its caller that user's
// rights.
const forged = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1",` +
	`"kind":{"group":"placement.kubernetes-fleet.io","version":"v1beta1","kind":"ResourceEnvelope"},` +
	`"resource":{"group":"placement.kubernetes-fleet.io","version":"v1beta1","resource":"resourceenvelopes"},` +
	`"name":"e","namespace":"default","operation":"CREATE","userInfo":{"username":"somebody"},"object":{` +
	`"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"ResourceEnvelope","metadata":{"name":"e","namespace":"default"},` +
	`"data":{"c":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}}}}}}`

// probe sends the header of a request with a long body to the webhooks' port, but no byte of the
// body. It returns the status code, which the server must send without the body.
func probe(ctx context.Context, path string, certificates ...tls.Certificate) (int, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}} // The client is a stranger.
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(gateway.port)))
	if err != nil {
		return 0, err
	}
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"+
		"X-Remote-User: system:apiserver\r\nX-Remote-Group: system:masters\r\n\r\n", path, 8<<20)
	if err != nil {
		return 0, errors.Join(err, conn.Close())
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, errors.Join(err, conn.Close())
	}
	return response.StatusCode, errors.Join(response.Body.Close(), conn.Close())
}

// certificateOf returns the client certificate of a hub user.
func certificateOf(config *rest.Config) tls.Certificate {
	GinkgoHelper()
	settings, err := config.TransportConfig()
	Expect(err).NotTo(HaveOccurred())
	of, err := transport.TLSConfigFor(settings)
	Expect(err).NotTo(HaveOccurred())
	certificate, err := of.GetClientCertificate(&tls.CertificateRequestInfo{})
	Expect(err).NotTo(HaveOccurred())
	return *certificate
}

// askByTheHub posts the forged review through the hub's API server.
func askByTheHub(ctx context.Context, config *rest.Config) error {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	return clientset.RESTClient().Post().AbsPath(intake.AggregatedPath(envelopePath)).
		SetHeader("Content-Type", "application/json").Body([]byte(forged)).Do(ctx).Error()
}

var _ = Describe("The webhooks' port", func() {
	It("rejects 40 strangers before it reads their bodies, and answers the API server at the same time", func(ctx SpecContext) {
		somebody, err := hub.ConfigFor("somebody")
		Expect(err).NotTo(HaveOccurred())
		proofs := [][]tls.Certificate{nil, {certificateOf(somebody)}, {certificateOf(hub.Config())}}
		for i := range 40 {
			for _, path := range []string{envelopePath, intake.AggregatedPath(envelopePath), immutability.PathPrefix + "guarded"} {
				code, err := probe(ctx, path, proofs[i%len(proofs)]...)
				Expect(err).NotTo(HaveOccurred())
				Expect(code).To(Equal(http.StatusUnauthorized))
			}
		}
		Expect(masters.Create(ctx, envelope(map[string]any{"kind": "Nothing"}), client.DryRunAll)).To(MatchError(ContainSubstring("denied the request")))
	})

	It("does not answer reviews that users send through the hub, whatever their rights", func(ctx SpecContext) {
		somebody, err := hub.ConfigFor("somebody")
		Expect(err).NotTo(HaveOccurred())
		Expect(askByTheHub(ctx, somebody)).To(Satisfy(apierrors.IsForbidden))

		By("granting create on the group")
		name := metav1.ObjectMeta{GenerateName: "reviews-"}
		role := &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{APIGroups: []string{intake.GroupVersion.Group}, Resources: []string{"*"}, Verbs: []string{"*"}}}}
		Expect(masters.Create(ctx, role)).To(Succeed())
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "somebody"}},
		}
		Expect(masters.Create(ctx, binding)).To(Succeed())
		refusal := And(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("only the hub's API server itself")))
		Eventually(askByTheHub).WithArguments(ctx, somebody).Should(refusal)

		By("granting all rights")
		Expect(askByTheHub(ctx, hub.Config())).To(refusal)

		By("using the API server's user name without its administrator group")
		named := rest.CopyConfig(hub.Config())
		named.Impersonate = rest.ImpersonationConfig{UserName: "system:apiserver"}
		Eventually(askByTheHub).WithArguments(ctx, named).Should(Satisfy(apierrors.IsForbidden))
	})
})

// The previous gateway required no client authentication. Its configurations must work until the
// new gateway rewrites them.
var _ = Describe("A hub whose configurations send reviews without proof", Serial, func() {
	It("loses no review while they are rewritten, and closes the port to strangers afterwards", func(ctx SpecContext) {
		ca, err := gateway.certificates.CABundle(ctx)
		Expect(err).NotTo(HaveOccurred())
		leadToTheGatewayAgain()
		gateway.installer.Extra = webhook.Configurations(webhook.Endpoint{
			Namespace: clusterv1beta1.SystemNamespace, Service: service, Port: int32(gateway.port), CABundle: ca,
		})
		Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
		Expect(gateway.handover.Direct(ctx)).To(BeTrue())
		calls := startLoad(ctx)
		calls.more(50)
		Expect(gateway.handover.Ready(ctx, ca)).To(Succeed())
		gateway.want(ctx)
		Expect(gateway.installer.InstallServing(ctx)).To(Succeed())
		Expect(gateway.handover.Direct(ctx)).To(BeFalse())
		calls.more(200)
		Expect(calls.end()).To(Succeed())
		Eventually(probe).WithArguments(ctx, envelopePath).Should(Equal(http.StatusUnauthorized))
	})
})
