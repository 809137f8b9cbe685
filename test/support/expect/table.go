// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package expect

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Columns are the headings that kubectl prints for a path, those of -o wide too.
func Columns(ctx context.Context, config *rest.Config, path string) []string {
	ginkgo.GinkgoHelper()
	var names []string
	for _, column := range tableOf(ctx, config, path).ColumnDefinitions {
		names = append(names, column.Name)
	}
	return names
}

// Cells are what it prints below them for one object, by heading.
func Cells(ctx context.Context, config *rest.Config, path string) map[string]string {
	ginkgo.GinkgoHelper()
	table := tableOf(ctx, config, path)
	gomega.Expect(table.Rows).To(gomega.HaveLen(1))
	printed := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		printed[column.Name] = fmt.Sprint(table.Rows[0].Cells[i])
	}
	return printed
}

func tableOf(ctx context.Context, config *rest.Config, path string) metav1.Table {
	ginkgo.GinkgoHelper()
	clientset, err := kubernetes.NewForConfig(config)
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	raw, err := clientset.Discovery().RESTClient().Get().AbsPath(path).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(ctx).Raw()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	var table metav1.Table
	gomega.Expect(json.Unmarshal(raw, &table)).To(gomega.Succeed())
	return table
}
