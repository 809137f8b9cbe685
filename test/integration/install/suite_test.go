// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install_test installs what ships on a real hub, also beside other products.
package install_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/pkg/install"
	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
)

var (
	hub       *env.Cluster
	hubClient client.Client
	clientset kubernetes.Interface
)

func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(90 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	RunSpecs(t, "Installing on a hub", Label("integration", "install"))
}

var _ = artifacts.Report()

var _ = BeforeSuite(func(ctx SpecContext) {
	ctrl.SetLogger(GinkgoLogr)
	klog.SetLogger(GinkgoLogr)
	var err error
	hub, err = env.Start(ctx, env.Options{Name: "hub"})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(hub.Stop(ctx)).To(Succeed()) })

	hubClient, err = hub.Client(clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme)
	Expect(err).NotTo(HaveOccurred())
	clientset, err = kubernetes.NewForConfig(hub.Config())
	Expect(err).NotTo(HaveOccurred())
})

// installer is the installer of a gateway of version v0.1.0.
func installer(definitions ...*apiextensionsv1.CustomResourceDefinition) *install.Installer {
	return &install.Installer{Client: hubClient, Definitions: definitions, Version: "v0.1.0", Clock: clock.RealClock{}}
}

// definition returns a small CRD of a kind that is unique to the spec.
func definition(plural, group string) *apiextensionsv1.CustomResourceDefinition {
	singular := plural[:len(plural)-1]
	preserve := true
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensionsv1.ClusterScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: singular, Kind: singular, ListKind: singular + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
}

// create creates the object with kubectl's field manager, as an object of another product.
func create(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(hubClient.Create(ctx, object, client.FieldOwner("kubectl-create"))).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(hubClient.Delete(ctx, object))).To(Succeed())
	})
}

// get reads the object again.
func get[T client.Object](ctx context.Context, object T) T {
	GinkgoHelper()
	current, ok := object.DeepCopyObject().(T)
	Expect(ok).To(BeTrue())
	Expect(hubClient.Get(ctx, client.ObjectKeyFromObject(object), current)).To(Succeed())
	return current
}
