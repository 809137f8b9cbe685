// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetview_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	viewv1alpha1 "fleetgate.io/fleetgate/pkg/apis/view/v1alpha1"
)

const protobuf = "application/vnd.kubernetes.protobuf"

// viewConfig is client-go's configuration from the kubeconfig of a view.
func viewConfig(ctx context.Context, view string) *rest.Config {
	GinkgoHelper()
	config, err := clientcmd.BuildConfigFromFlags("", someone(ctx, "jane", team, view).fleet)
	Expect(err).NotTo(HaveOccurred())
	return config
}

// viewOf returns a typed client of a view.
func viewOf(ctx context.Context, view string) *kubernetes.Clientset {
	GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(viewConfig(ctx, view))
	Expect(err).NotTo(HaveOccurred())
	return clientset
}

// forms records the requested and received content types.
type forms struct {
	http.RoundTripper

	mu           sync.Mutex // guards what follows
	asked, given []string
}

// RoundTrip records the content types of one request.
func (f *forms) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := f.RoundTripper.RoundTrip(r)
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked, f.given = append(f.asked, r.Header.Get("Accept")), append(f.given, res.Header.Get("Content-Type"))
	}
	return res, err
}

var _ = Describe("A typed client-go client that prefers protobuf", func() {
	for what, accepted := range map[string]string{"as it is today": "", "as controller-runtime sets it": protobuf + ",*/*"} {
		It("gets JSON "+what, func(ctx SpecContext) {
			config, seen := viewConfig(ctx, "all"), &forms{}
			config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
				seen.RoundTripper = inner
				return seen
			})
			if accepted != "" {
				config.AcceptContentTypes, config.ContentType = accepted, protobuf
			}
			clientset, err := kubernetes.NewForConfig(config)
			Expect(err).NotTo(HaveOccurred())
			pods := clientset.CoreV1().Pods(namespace)
			list, err := pods.List(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(list.Items).To(HaveLen(3))
			one, err := pods.Get(ctx, pod, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(one.Labels).To(HaveKeyWithValue(viewv1alpha1.LabelMember, second))
			w, err := pods.Watch(ctx, metav1.ListOptions{})
			Expect(err).NotTo(HaveOccurred())
			defer w.Stop()
			Eventually(w.ResultChan()).Should(Receive(HaveField("Object", BeAssignableToTypeOf(&corev1.Pod{}))))
			// The request body is protobuf, which members read.
			review, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, mayList(namespace), metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(review.Status.Allowed).To(BeTrue())
			Expect(seen.asked).To(HaveEach(ContainSubstring(protobuf)))
			Expect(seen.given).To(And(HaveLen(4), HaveEach(HavePrefix("application/json"))))
		})
	}

	It("gets an explanation if it accepts nothing else", func(ctx SpecContext) {
		config := viewConfig(ctx, "all")
		config.AcceptContentTypes, config.ContentType = protobuf, protobuf
		clientset, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		_, err = clientset.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		Expect(apierrors.IsNotAcceptable(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring("a view of the fleet responds with application/json, as objects or tables")))
	})
})

func mayList(namespace string) *authorizationv1.SelfSubjectAccessReview {
	return &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: namespace},
	}}
}

// k9s is a terminal program. These are the requests in its source.
var _ = Describe("A request of k9s to a view that qualifies names", func() {
	It("succeeds: discovery, access reviews, tables, objects by their qualified names, informers", func(ctx SpecContext) {
		config := viewConfig(ctx, "qualified:")
		clientset, err := kubernetes.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		version, err := clientset.ServerVersion()
		Expect(err).NotTo(HaveOccurred())
		Expect(version.Major).To(Equal("1"))
		kinds, err := clientset.ServerPreferredResources()
		Expect(err).NotTo(HaveOccurred())
		Expect(kinds).To(ContainElement(HaveField("GroupVersion", "apps/v1")))
		// k9s asks for rights in all namespaces, whichever it shows, and lists nothing when they
		// are denied.
		review, err := clientset.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, mayList(""), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.Allowed).To(BeTrue())

		for _, included := range []string{"Metadata", "Object"} {
			text, err := clientset.CoreV1().RESTClient().Get().Namespace(namespace).Resource("pods").Param("includeObject", included).
				SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json").DoRaw(ctx)
			Expect(err).NotTo(HaveOccurred())
			var table metav1.Table
			Expect(json.Unmarshal(text, &table)).To(Succeed())
			var names []string
			for _, row := range table.Rows {
				var of metav1.PartialObjectMetadata
				Expect(json.Unmarshal(row.Object.Raw, &of)).To(Succeed())
				Expect(of.Namespace).To(Equal(namespace))
				names = append(names, of.Name)
				_, err := clientset.CoreV1().Pods(of.Namespace).Get(ctx, of.Name, metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
			}
			Expect(names).To(Equal([]string{first + "." + twin, second + "." + pod, second + "." + twin}))
		}

		client, err := dynamic.NewForConfig(config)
		Expect(err).NotTo(HaveOccurred())
		factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
		informer := factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
		lister := informer.Lister().ByNamespace(namespace)
		informing, stop := context.WithCancel(ctx)
		factory.Start(informing.Done())
		DeferCleanup(func() {
			stop()
			factory.Shutdown()
		})
		for _, name := range []string{first + "." + twin, second + "." + twin} {
			Eventually(func() (runtime.Object, error) { return lister.Get(name) }).Should(HaveField("Object", HaveKey("spec")))
		}
	})
})
