// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package env_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"fleetgate.io/fleetgate/test/support/env"
)

var _ = Describe("A cluster", func() {
	It("allows an ordinary user only what RBAC grants", func(ctx SpecContext) {
		cfg, err := hub.ConfigFor("jane", "readers")
		Expect(err).NotTo(HaveOccurred())
		jane := clientOf(kubernetes.NewForConfig(cfg))
		_, err = jane.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "got %v", err)

		kubectl(ctx, hub, "", "create", "clusterrolebinding", "readers", "--clusterrole=view", "--group=readers")
		Eventually(func() error {
			_, err := jane.CoreV1().ConfigMaps("default").List(ctx, metav1.ListOptions{})
			return err
		}).Should(Succeed())
		_, err = jane.CoreV1().ConfigMaps("default").Create(ctx, configMap("janes"), metav1.CreateOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "got %v", err)
	})

	It("shows anonymous callers its health only", func() {
		anonymous, err := rest.HTTPClientFor(rest.AnonymousClientConfig(hub.Config()))
		Expect(err).NotTo(HaveOccurred())
		for path, want := range map[string]int{"/readyz": http.StatusOK, "/version": http.StatusUnauthorized, "/api": http.StatusUnauthorized} {
			resp, err := anonymous.Get(hub.URL + path)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
			Expect(resp.StatusCode).To(Equal(want), path)
		}
	})

	It("aggregates an API and authenticates the caller to it", func(ctx SpecContext) {
		server := aggregatedAPI(ctx)
		address, err := url.Parse(server.URL)
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, hub, fmt.Sprintf(apiService, address.Port()), "apply", "-f", "-")
		Eventually(func() error {
			_, err := client(hub).Discovery().ServerResourcesForGroupVersion("test.fleetgate.io/v1alpha1")
			return err
		}).Should(Succeed())
		Expect(kubectl(ctx, hub, "", "get", "--raw", "/apis/test.fleetgate.io/v1alpha1/whoami")).To(Equal(env.BreakGlass))
	})

	It("runs a Deployment on its simulated nodes", func(ctx SpecContext) {
		kubectl(ctx, member, "", "create", "deployment", "web", "--image=example.org/web:v1", "--replicas=3")
		kubectl(ctx, member, "", "wait", "deployment", "web", "--for=condition=Available", "--timeout=60s")
		deployment, err := client(member).AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(deployment.Status.AvailableReplicas).To(BeEquivalentTo(3))
	})

	It("finishes a Job", func(ctx SpecContext) {
		kubectl(ctx, member, "", "create", "job", "once", "--image=example.org/once:v1")
		kubectl(ctx, member, "", "wait", "job", "once", "--for=condition=Complete", "--timeout=60s")
	})

	It("garbage-collects the objects of a deleted namespace or owner", func(ctx SpecContext) {
		kubectl(ctx, member, "", "create", "namespace", "gone")
		kubectl(ctx, member, "", "create", "deployment", "web", "--image=example.org/web:v1", "-n", "gone")
		Eventually(pods).WithArguments(ctx, "gone").ShouldNot(BeEmpty())
		kubectl(ctx, member, "", "delete", "deployment", "web", "-n", "gone")
		Eventually(pods).WithArguments(ctx, "gone").Should(BeEmpty())
		kubectl(ctx, member, "", "delete", "namespace", "gone", "--timeout=60s")
	})

	It("issues ServiceAccount tokens that other clusters reject", func(ctx SpecContext) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{}}
		granted, err := client(member).CoreV1().ServiceAccounts("default").CreateToken(ctx, "default", request, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(whoAmI(ctx, member, granted.Status.Token)).To(Equal("system:serviceaccount:default:default"))
		_, err = whoAmI(ctx, hub, granted.Status.Token)
		Expect(apierrors.IsUnauthorized(err)).To(BeTrue(), "got %v", err)
	})

	It("fills token Secrets of ServiceAccounts", func(ctx SpecContext) {
		kubectl(ctx, hub, tokenSecret, "apply", "-f", "-")
		secrets := client(hub).CoreV1().Secrets("default")
		var secret *corev1.Secret
		Eventually(func() (map[string][]byte, error) {
			var err error
			secret, err = secrets.Get(ctx, "token", metav1.GetOptions{})
			return secret.Data, err
		}).Should(HaveKey("token"))
		Expect(secret.Data["ca.crt"]).To(Equal(hub.CABundle))
		Expect(whoAmI(ctx, hub, string(secret.Data["token"]))).To(Equal("system:serviceaccount:default:default"))
	})

	It("signs an approved certificate request", func(ctx SpecContext) {
		key, request := certificateRequest("kim", "readers")
		csrs := client(hub).CertificatesV1().CertificateSigningRequests()
		_, err := csrs.Create(ctx, request, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		kubectl(ctx, hub, "", "certificate", "approve", request.Name)
		var issued []byte
		Eventually(func() ([]byte, error) {
			got, err := csrs.Get(ctx, request.Name, metav1.GetOptions{})
			issued = got.Status.Certificate
			return issued, err
		}).ShouldNot(BeEmpty())
		cfg := rest.AnonymousClientConfig(hub.Config())
		cfg.CertData, cfg.KeyData = issued, key
		Expect(userOf(ctx, cfg)).To(Equal("kim"))
	})

	It("enforces a ValidatingAdmissionPolicy", func(ctx SpecContext) {
		kubectl(ctx, hub, admissionPolicy, "apply", "-f", "-")
		Eventually(func() string {
			out, _ := tryKubectl(ctx, hub, "", "create", "configmap", "unwanted", "--dry-run=server")
			return out
		}).Should(ContainSubstring("no ConfigMap is called unwanted"))
	})

	It("keeps Secrets encrypted in etcd", func(ctx SpecContext) {
		kubectl(ctx, hub, "", "create", "secret", "generic", "hidden", "--from-literal=password=open-sesame")
		kubectl(ctx, hub, "", "create", "configmap", "plain", "--from-literal=password=open-sesame")
		Expect(inEtcd(ctx, hub, "/registry/configmaps/default/plain")).To(ContainSubstring("open-sesame"))
		Expect(inEtcd(ctx, hub, "/registry/secrets/default/hidden")).To(And(
			HavePrefix("k8s:enc:secretbox:"), Not(ContainSubstring("open-sesame"))))
	})

	It("writes an audit log when asked to", func(ctx SpecContext) {
		kubectl(ctx, hub, "", "get", "--raw", "/version?audited")
		Eventually(os.ReadFile).WithArguments(filepath.Join(hub.Dir, "audit.log")).Should(ContainSubstring("/version?audited"))
	})
})

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func pods(ctx context.Context, namespace string) ([]corev1.Pod, error) {
	list, err := client(member).CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	return list.Items, err
}

func whoAmI(ctx context.Context, c *env.Cluster, token string) (string, error) {
	cfg := rest.AnonymousClientConfig(c.Config())
	cfg.BearerToken = token
	return userOf(ctx, cfg)
}

func userOf(ctx context.Context, cfg *rest.Config) (string, error) {
	GinkgoHelper()
	self := clientOf(kubernetes.NewForConfig(cfg)).AuthenticationV1().SelfSubjectReviews()
	review, err := self.Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.UserInfo.Username, nil
}

func certificateRequest(user, group string) (key []byte, request *certificatesv1.CertificateSigningRequest) {
	GinkgoHelper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	keyDER, err := x509.MarshalECPrivateKey(private)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{group}}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, private)
	Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}

// inEtcd returns the stored value of a key directly from etcd.
func inEtcd(ctx context.Context, c *env.Cluster, key string) string {
	GinkgoHelper()
	cluster := struct{ Ports struct{ Etcd int } }{}
	data, err := os.ReadFile(filepath.Join(c.Dir, "cluster.json"))
	Expect(err).NotTo(HaveOccurred())
	Expect(json.Unmarshal(data, &cluster)).To(Succeed())
	etcd, err := rest.HTTPClientFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{
		CAFile:   filepath.Join(c.Dir, "pki", "etcd-ca.crt"),
		CertFile: filepath.Join(c.Dir, "pki", "etcd-client.crt"),
		KeyFile:  filepath.Join(c.Dir, "pki", "etcd-client.key"),
	}})
	Expect(err).NotTo(HaveOccurred())
	body := fmt.Sprintf(`{"key": %q}`, base64.StdEncoding.EncodeToString([]byte(key)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		fmt.Sprintf("https://127.0.0.1:%d/v3/kv/range", cluster.Ports.Etcd), strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	resp, err := etcd.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	found := struct{ Kvs []struct{ Value []byte } }{}
	Expect(json.NewDecoder(resp.Body).Decode(&found)).To(Succeed())
	Expect(found.Kvs).To(HaveLen(1))
	return string(found.Kvs[0].Value)
}

// aggregatedAPI serves a group that returns the caller's name from the front proxy's headers, and
// accepts only the front proxy of the hub.
func aggregatedAPI(ctx context.Context) *httptest.Server {
	GinkgoHelper()
	trust, err := client(hub).CoreV1().ConfigMaps("kube-system").Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	proxies := x509.NewCertPool()
	Expect(proxies.AppendCertsFromPEM([]byte(trust.Data["requestheader-client-ca-file"]))).To(BeTrue())

	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/test.fleetgate.io/v1alpha1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
			GroupVersion: "test.fleetgate.io/v1alpha1",
		})
	})
	mux.HandleFunc("GET /apis/test.fleetgate.io/v1alpha1/whoami", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Header.Get("X-Remote-User")))
	})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: proxies}
	server.StartTLS()
	DeferCleanup(server.Close)
	return server
}

const apiService = `apiVersion: v1
kind: Service
metadata: {name: test-api, namespace: default}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.test.fleetgate.io}
spec:
  group: test.fleetgate.io
  version: v1alpha1
  groupPriorityMinimum: 1000
  versionPriority: 1
  insecureSkipTLSVerify: true
  service: {name: test-api, namespace: default, port: %s}
`

const tokenSecret = `apiVersion: v1
kind: Secret
metadata:
  name: token
  namespace: default
  annotations: {kubernetes.io/service-account.name: default}
type: kubernetes.io/service-account-token
`

const admissionPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: unwanted}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["CREATE"]}
  validations:
  - {expression: 'object.metadata.name != "unwanted"', message: no ConfigMap is called unwanted}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: unwanted}
spec: {policyName: unwanted, validationActions: [Deny]}
`
